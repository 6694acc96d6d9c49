//! `customize` and `clarify`: an interface is changed as its user wishes, or the user is asked what
//! was meant.

use serde_json::{Value, json};

use super::budget::Budget;
use super::failure::Failure;
use super::generate::{ended, safety_note};
use super::job::{End, Job, Spoken};
use super::params::Customize;
use super::prompts;
use super::reply::{Reply, ReplyReader};
use crate::base::text::one_line;
use crate::llm::{Message, ModelInfo, Role};

const MOST_CONTINUES: usize = 3;
const LONGEST_WISH: usize = 120;

pub(super) async fn run(job: &mut Job<'_>, mut call: Customize) -> Result<Value, Failure> {
    job.chunks.only_if(call.stream);
    let spec = match call.spec.take() {
        Some(spec) => Some(job.read_spec(spec).await?),
        None => None,
    };
    let Some(model) = job.desk.backend.model().await else {
        let message =
            "No language model is connected, so the interface cannot be changed; name one in the configuration";
        return Err(Failure::new(job.work.failed_code(), message).with(json!({"noModel": true})));
    };
    // A call of a tool comes as a whole in the end; text can be passed on as it comes.
    let with_tools = model.tools && !call.stream;
    let system = prompts::customize_system(with_tools);
    let fixed = system.len() + prompts::customize_message(&call, "").len();
    let (budget, history) = (Budget::of(Some(&model)), std::mem::take(&mut call.history));
    let fitting = job.blocking(move || budget.fit(fixed, spec.as_ref(), history)).await??;
    let mut messages = prompts::earlier(&fitting.history);
    messages.push(prompts::message(Role::User, prompts::customize_message(&call, &fitting.digest)));
    let wish = one_line(&call.prompt, LONGEST_WISH);
    drop(call);
    job.release_input();
    let desk = job.desk;
    let _slot = desk.models.acquire().await;
    let (mut reader, reply) = converse(job, &model, &system, messages, with_tools).await?;
    Ok(match reply {
        Reply::Question { question, options } => {
            json!({"code": null, "clarificationNeeded": true, "question": question, "options": options, "assumptions": []})
        }
        Reply::Code { description, mut assumptions } => {
            job.pass_on(&reader.take_rest()).await?;
            job.all_passed_on().await?;
            assumptions.extend(safety_note(reader.intake()));
            let description = description.unwrap_or_else(|| format!("Changed as asked: {}", ended(&wish)));
            json!({
                "code": reader.intake().code(),
                "description": description,
                "assumptions": assumptions,
                "clarificationNeeded": false,
            })
        }
    })
}

/// Asks until there is code or a question; once more when there is neither.
async fn converse(
    job: &mut Job<'_>,
    model: &ModelInfo,
    system: &str,
    mut messages: Vec<Message>,
    with_tools: bool,
) -> Result<(ReplyReader, Reply), Failure> {
    let tools = if with_tools { prompts::customize_tools() } else { Vec::new() };
    let mut reader = ReplyReader::default();
    let (mut repaired, mut continued) = (false, 0);
    loop {
        let answer = job.ask(model, system, &messages, &tools)?;
        let mut spoken = Spoken::default();
        let end = job.listen(answer, &mut spoken, |text| reader.push(text)).await?;
        let next = match end {
            End::Cut(failure) if continued == MOST_CONTINUES || !spoken.calls.is_empty() || spoken.text.is_empty() => {
                return Err(failure);
            }
            End::Cut(_) => {
                continued += 1;
                let held = reader.go_on();
                job.pass_on(&held).await?;
                prompts::GO_ON
            }
            End::Complete => {
                if let Some(reply) = reader.finish(&spoken.calls) {
                    return Ok((reader, reply));
                }
                if repaired {
                    return Err(Failure::unusable(job.work, "The model answered with neither code nor a question"));
                }
                repaired = true;
                reader = ReplyReader::default();
                prompts::NEITHER
            }
        };
        let said = if spoken.text.trim().is_empty() { "(nothing)".to_owned() } else { spoken.text };
        messages.push(prompts::message(Role::Assistant, said));
        messages.push(prompts::message(Role::User, next));
    }
}
