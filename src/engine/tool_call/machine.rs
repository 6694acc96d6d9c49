//! The life of one tool call as a pure function: which state follows which, and what has to be
//! done about it. No clock, no I/O; the turn carries the effects out.
//!
//! Every path ends in [`State::Done`] with exactly one terminal event on the wire and exactly one
//! result in the history, whatever comes in and in whatever order.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum State {
    /// Nobody has heard of it.
    New,
    /// The model is writing its arguments.
    Preparing,
    /// Whether it may run is being worked out.
    Ruling,
    /// The user is asked.
    Waiting,
    Approved,
    Running,
    /// Told to end; what it did meanwhile still counts.
    Stopping,
    Done(End),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum End {
    /// It gave the model a result, good or bad.
    Returned,
    Rejected(Why),
}

/// Why a call did not run, or not to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Why {
    User,
    Config,
    Hook,
    Stopped,
    /// The answer broke off before the call was complete.
    StreamLost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Input {
    ArgsDelta,
    ArgsReady,
    StreamLost,
    /// The arguments are no JSON, the tool is unknown, or something it needs is missing.
    Invalid,
    Allow,
    Ask,
    /// By the configuration or by a hook.
    Deny(Why),
    UserApproved {
        remember: bool,
    },
    UserRejected,
    Start,
    Finished,
    Stop,
    GraceOver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Effect {
    EmitPrepare,
    /// Run the hooks and work out whether it may run.
    Rule,
    EmitRun {
        manual: bool,
    },
    /// Tell the user that we wait for them.
    EmitWaiting,
    Remember,
    Spawn,
    EmitRunning,
    Cancel,
    EmitCalled,
    EmitRejected(Why),
    Record(Result),
}

/// What the model is told became of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Result {
    /// Why it could not even begin.
    Invalid,
    Output,
    Rejected(Why),
    /// It was running; whether it had an effect is unknown.
    Interrupted,
}

/// One step. A pair that is not listed is a bug somewhere else: it is logged, and nothing happens.
pub(in crate::engine) fn step(state: State, input: Input) -> (State, Vec<Effect>) {
    use Effect as E;
    use Input as I;
    use State as S;

    let rejected =
        |why: Why| (S::Done(End::Rejected(why)), vec![E::EmitRejected(why), E::Record(Result::Rejected(why))]);
    match (state, input) {
        (S::Done(_), _) => (state, vec![]),
        (S::New | S::Preparing, I::ArgsDelta) => (S::Preparing, vec![E::EmitPrepare]),
        (S::New, I::ArgsReady) => (S::Ruling, vec![E::EmitPrepare, E::Rule]),
        (S::Preparing, I::ArgsReady) => (S::Ruling, vec![E::Rule]),
        (S::New | S::Preparing, I::StreamLost) => rejected(Why::StreamLost),
        (S::Ruling, I::Invalid) => (
            S::Done(End::Returned),
            vec![E::EmitRun { manual: false }, E::EmitRunning, E::Record(Result::Invalid), E::EmitCalled],
        ),
        (S::Ruling, I::Allow) => (S::Approved, vec![E::EmitRun { manual: false }]),
        (S::Ruling, I::Ask) => (S::Waiting, vec![E::EmitRun { manual: true }, E::EmitWaiting]),
        (S::Ruling, I::Deny(why)) => (
            S::Done(End::Rejected(why)),
            vec![E::EmitRun { manual: false }, E::EmitRejected(why), E::Record(Result::Rejected(why))],
        ),
        (S::Waiting, I::UserApproved { remember: true }) => (S::Approved, vec![E::Remember]),
        (S::Waiting, I::UserApproved { remember: false }) => (S::Approved, vec![]),
        (S::Waiting, I::UserRejected) => rejected(Why::User),
        // Told first, so that nothing that it does, like asking the user, is seen before.
        (S::Approved, I::Start) => (S::Running, vec![E::EmitRunning, E::Spawn]),
        (S::Running, I::Finished) => (S::Done(End::Returned), vec![E::Record(Result::Output), E::EmitCalled]),
        (S::Running, I::Stop) => (S::Stopping, vec![E::Cancel]),
        (S::Stopping, I::Finished) => {
            (S::Done(End::Rejected(Why::Stopped)), vec![E::EmitRejected(Why::Stopped), E::Record(Result::Output)])
        }
        (S::Stopping, I::GraceOver) => {
            (S::Done(End::Rejected(Why::Stopped)), vec![E::EmitRejected(Why::Stopped), E::Record(Result::Interrupted)])
        }
        (S::Stopping, I::Stop) => (state, vec![]),
        (S::New | S::Preparing | S::Ruling | S::Waiting | S::Approved, I::Stop) => rejected(Why::Stopped),
        _ => {
            tracing::error!(?state, ?input, "a tool call got something it cannot get");
            (state, vec![])
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_input() -> impl Strategy<Value = Input> {
        prop_oneof![
            Just(Input::ArgsDelta),
            Just(Input::ArgsReady),
            Just(Input::StreamLost),
            Just(Input::Invalid),
            Just(Input::Allow),
            Just(Input::Ask),
            Just(Input::Deny(Why::Config)),
            Just(Input::Deny(Why::Hook)),
            any::<bool>().prop_map(|remember| Input::UserApproved { remember }),
            Just(Input::UserRejected),
            Just(Input::Start),
            Just(Input::Finished),
            Just(Input::Stop),
            Just(Input::GraceOver),
        ]
    }

    /// What a turn sends at its very end to whatever is still open.
    const CLOSING: [Input; 2] = [Input::Stop, Input::GraceOver];

    proptest! {
        #[test]
        fn whatever_comes_in_there_is_one_end(inputs in prop::collection::vec(any_input(), 0..40)) {
            let mut state = State::New;
            let mut all = Vec::new();
            for input in inputs.into_iter().chain(CLOSING) {
                let done = matches!(state, State::Done(_));
                let (next, effects) = step(state, input);
                prop_assert!(!done || (effects.is_empty() && next == state), "nothing happens after the end");
                all.extend(effects);
                state = next;
            }
            prop_assert!(matches!(state, State::Done(_)), "{state:?}");
            let count = |wanted: fn(&Effect) -> bool| all.iter().filter(|effect| wanted(effect)).count();
            let terminal = count(|effect| matches!(effect, Effect::EmitCalled | Effect::EmitRejected(_)));
            prop_assert_eq!(terminal, 1);
            prop_assert_eq!(count(|effect| matches!(effect, Effect::Record(_))), 1, "one result in the history");
            prop_assert!(count(|effect| matches!(effect, Effect::Spawn)) <= 1);
            let runs = count(|effect| matches!(effect, Effect::EmitRun { .. }));
            prop_assert!(runs <= 1, "{runs}");
            let at = |wanted: fn(&Effect) -> bool| all.iter().position(wanted);
            let called = at(|effect| matches!(effect, Effect::EmitCalled));
            let running = at(|effect| matches!(effect, Effect::EmitRunning));
            if let Some(called) = called {
                prop_assert!(running.is_some_and(|running| running < called), "called only after running");
            }
            let rejected = at(|effect| matches!(effect, Effect::EmitRejected(_)));
            let spawned = at(|effect| matches!(effect, Effect::Spawn));
            if let Some(spawned) = spawned {
                prop_assert!(running.is_some_and(|running| running < spawned), "told before it starts");
            }
            if let (Some(rejected), Some(spawned)) = (rejected, spawned) {
                prop_assert!(spawned < rejected, "nothing starts after a rejection");
                let cancelled = at(|effect| matches!(effect, Effect::Cancel));
                prop_assert!(cancelled.is_some(), "what was started is told to end before it is rejected");
            }
        }
    }

    fn run(inputs: &[Input]) -> (State, Vec<Effect>) {
        inputs.iter().fold((State::New, Vec::new()), |(state, mut all), input| {
            let (next, effects) = step(state, *input);
            all.extend(effects);
            (next, all)
        })
    }

    #[test]
    fn an_allowed_call_runs_and_returns() {
        let (state, effects) = run(&[Input::ArgsDelta, Input::ArgsReady, Input::Allow, Input::Start, Input::Finished]);
        assert_eq!(state, State::Done(End::Returned));
        assert_eq!(
            effects,
            [
                Effect::EmitPrepare,
                Effect::Rule,
                Effect::EmitRun { manual: false },
                Effect::EmitRunning,
                Effect::Spawn,
                Effect::Record(Result::Output),
                Effect::EmitCalled,
            ]
        );
    }

    #[test]
    fn what_a_stopped_call_really_did_is_recorded() {
        let (_, effects) = run(&[Input::ArgsReady, Input::Allow, Input::Start, Input::Stop, Input::Finished]);
        assert_eq!(
            effects[effects.len() - 3..],
            [Effect::Cancel, Effect::EmitRejected(Why::Stopped), Effect::Record(Result::Output)]
        );
        let (_, effects) = run(&[Input::ArgsReady, Input::Allow, Input::Start, Input::Stop, Input::GraceOver]);
        assert_eq!(effects[effects.len() - 1], Effect::Record(Result::Interrupted));
    }

    #[test]
    fn a_question_is_answered_once() {
        let asked = [Input::ArgsReady, Input::Ask];
        let (_, effects) = run(&[&asked[..], &[Input::UserRejected, Input::UserApproved { remember: true }]].concat());
        assert!(!effects.contains(&Effect::Spawn));
        let (state, effects) =
            run(&[&asked[..], &[Input::UserApproved { remember: true }, Input::UserRejected]].concat());
        assert_eq!(state, State::Approved);
        assert!(effects.ends_with(&[Effect::Remember]));
    }

    #[test]
    fn bad_arguments_are_an_answer_and_a_denial_is_a_rejection() {
        let (_, effects) = run(&[Input::ArgsReady, Input::Invalid]);
        assert!(effects.ends_with(&[Effect::EmitRunning, Effect::Record(Result::Invalid), Effect::EmitCalled]));
        let (state, _) = run(&[Input::ArgsReady, Input::Deny(Why::Hook)]);
        assert_eq!(state, State::Done(End::Rejected(Why::Hook)));
    }
}
