//! `generate`: from a specification to an interface.

use serde_json::{Value, json};

use super::budget::Budget;
use super::code::{Intake, component_count, opening_remark};
use super::failure::Failure;
use super::job::{End, Job, Spoken};
use super::offline;
use super::params::{Generate, Wishes};
use super::prompts;
use super::spec::Spec;
use crate::llm::{ModelInfo, Role};

/// How often an answer that broke off is continued.
const MOST_CONTINUES: usize = 3;

pub(super) async fn run(job: &mut Job<'_>, call: Generate) -> Result<Value, Failure> {
    let Generate { spec, wishes } = call;
    let spec = job.read_spec(spec).await?;
    let model = job.desk.backend.model().await;
    let budget = Budget::of(model.as_ref());
    let system = prompts::generate_system(&wishes);
    let fixed = system.len() + prompts::generate_message("", &wishes).len();
    let (spec, fitting) = job
        .blocking(move || {
            let fitting = budget.fit(fixed, Some(&spec), Vec::new());
            (spec, fitting)
        })
        .await?;
    let digest = fitting?.digest;
    job.release_input();
    match model {
        Some(model) => {
            let message = prompts::generate_message(&digest, &wishes);
            from_model(job, &model, &system, message, &spec).await
        }
        None => from_spec(job, spec, wishes).await,
    }
}

async fn from_model(
    job: &mut Job<'_>,
    model: &ModelInfo,
    system: &str,
    message: String,
    spec: &Spec,
) -> Result<Value, Failure> {
    let desk = job.desk;
    let _slot = desk.models.acquire().await;
    let mut messages = vec![prompts::message(Role::User, message)];
    let mut intake = Intake::default();
    let (mut repaired, mut continued) = (false, 0);
    loop {
        let answer = job.ask(model, system, &messages, &[])?;
        let mut spoken = Spoken::default();
        let end = job.listen(answer, &mut spoken, |text| intake.push(text)).await?;
        let next = match end {
            End::Cut(failure) if continued == MOST_CONTINUES || spoken.text.is_empty() => return Err(failure),
            End::Cut(_) => {
                continued += 1;
                let held = intake.go_on();
                job.pass_on(&held).await?;
                prompts::GO_ON
            }
            End::Complete => {
                let rest = intake.finish();
                job.pass_on(&rest).await?;
                if !intake.is_empty() {
                    break;
                }
                if repaired {
                    return Err(Failure::unusable(job.work, "The model wrote no code"));
                }
                repaired = true;
                intake = Intake::default();
                prompts::NO_CODE
            }
        };
        messages.push(prompts::message(Role::Assistant, spoken.text));
        messages.push(prompts::message(Role::User, next));
    }
    job.all_passed_on().await?;
    let mut description = opening_remark(intake.code()).unwrap_or_else(|| spec.summary());
    if let Some(note) = safety_note(&intake) {
        description = format!("{} {note}", ended(&description));
    }
    Ok(result(intake.code(), &description))
}

/// Without a model: an interface that shows every endpoint in the same way.
async fn from_spec(job: &mut Job<'_>, spec: Spec, wishes: Wishes) -> Result<Value, Failure> {
    let description = format!(
        "{}. It was built from the specification alone, because no language model is connected.",
        spec.summary()
    );
    let code = job.blocking(move || offline::interface(&spec, &wishes)).await?;
    for piece in code.split_inclusive('\n') {
        job.pass_on(piece).await?;
    }
    job.all_passed_on().await?;
    Ok(result(&code, &description))
}

fn result(code: &str, description: &str) -> Value {
    json!({"code": code, "componentCount": component_count(code), "description": description})
}

/// What the user should know about changes that the model did not make.
pub(super) fn safety_note(intake: &Intake) -> Option<String> {
    let names: Vec<&str> = intake.replaced().into_iter().map(|word| word.trim_end_matches(['(', '.', '['])).collect();
    (!names.is_empty()).then(|| format!("Not allowed in the application and made harmless: {}.", names.join(", ")))
}

pub(super) fn ended(sentence: &str) -> String {
    let sentence = sentence.trim_end();
    if sentence.ends_with(['.', '!', '?']) { sentence.to_owned() } else { format!("{sentence}.") }
}
