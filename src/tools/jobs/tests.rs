//! What becomes of jobs that have ended, without running any; `tests/process` runs real ones.

use super::*;

fn job(chat: &str) -> Job {
    Job {
        label: "label".to_owned(),
        command: "make\nall".to_owned(),
        chat: chat.into(),
        call: "call".into(),
        status: JobStatus::Running,
        exit_code: None,
        started_at: 0,
        started: Instant::now(),
        ended: None,
        output: JobOutput::default(),
        reported: false,
        signals: Signals::default(),
    }
}

fn ended(chat: &str, code: i32, lines: usize) -> Job {
    let mut job = job(chat);
    for number in 0..lines {
        job.output.push(JobStream::Stdout, &format!("line {number}\n"));
    }
    job.finish(Some(Ended { code: Some(code) }));
    job
}

fn jobs(all: impl IntoIterator<Item = Job>) -> Jobs {
    let jobs = Jobs::default();
    for (number, job) in (1..).zip(all) {
        jobs.state().jobs.insert(JobId(number), job);
    }
    jobs
}

fn ids(jobs: &Jobs) -> Vec<String> {
    jobs.list().iter().map(|job| job.id.to_string()).collect()
}

#[test]
fn notices_are_told_once_to_their_chat() {
    let jobs = jobs([ended("a", 0, 2), ended("b", 1, 0), job("a"), ended("a", 3, 30)]);
    let notices = jobs.take_notices(&"a".into());
    assert_eq!(notices.len(), 2);
    assert!(notices[0].contains("job-1") && notices[0].contains("exit code 0"), "{}", notices[0]);
    assert!(notices[0].ends_with("line 0\nline 1") && notices[0].contains("make all"), "{}", notices[0]);
    assert!(notices[1].contains("line 10\n") && !notices[1].contains("line 9\n"), "{}", notices[1]);
    assert!(notices[1].contains("read_output has more"), "{}", notices[1]);
    assert!(jobs.take_notices(&"a".into()).is_empty());
    // The first was told whole; of the last there is more to read.
    assert_eq!(ids(&jobs), ["job-2", "job-3", "job-4"]);
    assert_eq!(jobs.read_output(JobId(4)).unwrap().lines.len(), 30);
    assert_eq!(ids(&jobs), ["job-2", "job-3"]);
    assert!(jobs.take_notices(&"b".into())[0].contains("printed nothing"));
    assert_eq!(ids(&jobs), ["job-3"]);
}

#[test]
fn reading_the_end_is_being_told() {
    let jobs = jobs([ended("a", 2, 1)]);
    let peeked = jobs.peek(JobId(1)).unwrap();
    assert_eq!((peeked.status, peeked.exit_code, peeked.lines.len()), (JobStatus::Failed, Some(2), 1));
    assert_eq!(ids(&jobs), ["job-1"]);
    assert_eq!(jobs.read_output(JobId(1)).unwrap().lines.len(), 1);
    assert!(jobs.take_notices(&"a".into()).is_empty());
    assert!(jobs.read_output(JobId(1)).is_none() && jobs.peek(JobId(1)).is_none());
}

#[test]
fn kill_is_true_once() {
    let jobs = jobs([job("a"), ended("a", 0, 0)]);
    let changes = jobs.changes();
    assert!(jobs.kill(JobId(1)));
    assert!(!jobs.kill(JobId(1)) && !jobs.kill(JobId(2)) && !jobs.kill(JobId(9)));
    assert_eq!(jobs.list()[0].status, JobStatus::Killed);
    assert!(changes.has_changed().unwrap());
    let mut state = jobs.state();
    let killed = state.jobs.get_mut(&JobId(1)).unwrap();
    assert!(!killed.has_news());
    killed.finish(Some(Ended { code: Some(143) }));
    assert_eq!((killed.status, killed.exit_code, killed.has_news()), (JobStatus::Killed, None, true));
}

#[test]
fn the_finished_do_not_pile_up() {
    let many = jobs((0..MAX_FINISHED + 5).map(|_| ended("a", 0, 1)).chain([job("a")]));
    let changes = many.changes();
    assert_eq!(many.list().len(), MAX_FINISHED + 1);
    assert_eq!(many.list()[0].id, JobId(6));
    assert!(changes.has_changed().unwrap());
    let old = jobs([ended("a", 0, 1), job("a")]);
    let later = Instant::now() + KEEP_FINISHED;
    assert!(old.state().purge(later));
    assert_eq!(ids(&old), ["job-2"]);
}

#[test]
fn lists_say_how_each_stands() {
    let jobs = jobs([ended("a", 3, 0), job("b")]);
    let listed: Vec<String> = jobs.list().iter().map(|job| words::listed(job, job.chat != "a".into())).collect();
    assert_eq!(
        listed,
        ["job-1 [failed, exit code 3, 0s] label: make all", "job-2 [running, 0s, of another chat] label: make all"]
    );
    let reading = JobReading { lines: Vec::new(), dropped: 3, status: JobStatus::Running, exit_code: None };
    assert_eq!(
        words::reading(JobId(2), &reading),
        "job-2 [running]\n(3 earlier lines are no longer kept)\n(no new output)"
    );
}
