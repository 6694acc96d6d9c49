//! What the user can choose in a session: an agent, a model, a variant of it, and whether tools run
//! without questions. Clients know agents in two forms, as modes and as a config option; both are
//! always sent.

use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectGroup, SessionConfigSelectOption, SessionConfigSelectOptions, SessionMode, SessionModeState,
    SessionUpdate,
};

use super::failure::Failure;
use super::session::{Choice, Session};
use crate::base::ModelId;
use crate::base::text::one_line;

pub(super) const MODE: &str = "mode";
pub(super) const MODEL: &str = "model";
pub(super) const VARIANT: &str = "variant";
pub(super) const TRUST: &str = "trust";
/// The variant of a model that is the model itself.
const NO_VARIANT: &str = "default";

impl Session {
    pub(super) fn modes(&self) -> SessionModeState {
        let agents = self.agents();
        let current = self.agent_of(&self.choice(), &agents);
        let mode = |agent: &String| SessionMode::new(agent.clone(), title_case(agent));
        SessionModeState::new(current, agents.iter().map(mode).collect())
    }

    /// All of them, with what is chosen.
    pub(super) fn config_options(&self) -> Vec<SessionConfigOption> {
        let choice = self.choice();
        let agents = self.agents();
        let agent = self.agent_of(&choice, &agents);
        let model = self.model_of(&choice);
        let agents: Vec<_> =
            agents.iter().map(|agent| SessionConfigSelectOption::new(agent.clone(), title_case(agent))).collect();
        let mut options = vec![
            SessionConfigOption::select(MODE, "Mode", agent.clone(), agents)
                .description("How ECA works".to_owned())
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select(MODEL, "Model", model.to_string(), self.model_options(&model))
                .description("Who answers".to_owned())
                .category(SessionConfigOptionCategory::Model),
        ];
        let variants = self.engine.registry().variants(&model);
        if !variants.is_empty() {
            let current = self.variant_of(&choice, &agent, &variants).unwrap_or_else(|| NO_VARIANT.to_owned());
            let named = |name: &String| SessionConfigSelectOption::new(name.clone(), title_case(name));
            let plain = SessionConfigSelectOption::new(NO_VARIANT, "Default");
            let variants: Vec<_> = std::iter::once(plain).chain(variants.iter().map(named)).collect();
            options.push(
                SessionConfigOption::select(VARIANT, "Variant", current, variants)
                    .description("How the model thinks".to_owned())
                    .category(SessionConfigOptionCategory::ThoughtLevel),
            );
        }
        if self.voice.client.facts().switches {
            options.push(
                SessionConfigOption::boolean(TRUST, "Run tools without asking", choice.trust)
                    .description("What the configuration forbids stays forbidden".to_owned()),
            );
        }
        options
    }

    fn agents(&self) -> Vec<String> {
        self.engine.catalog().agents
    }

    /// The agent that answers: the chosen one while there is such an agent.
    fn agent_of(&self, choice: &Choice, agents: &[String]) -> String {
        let wished = choice.agent.clone().unwrap_or_else(|| choice.default_agent.clone());
        let known = agents.contains(&wished).then_some(wished);
        known.or_else(|| agents.first().cloned()).unwrap_or_else(|| choice.default_agent.clone())
    }

    /// The agent for a prompt.
    pub(super) fn agent(&self) -> String {
        self.agent_of(&self.choice(), &self.agents())
    }

    /// The model that answers: the chosen one, else the chat's, else the agent's or the default.
    fn model_of(&self, choice: &Choice) -> ModelId {
        let agent = self.agent_of(choice, &self.agents());
        let kept = choice.model.clone().or_else(|| choice.chats_model.clone());
        kept.or_else(|| self.engine.agent_model(&agent, None)).unwrap_or_else(|| self.engine.catalog().default_model)
    }

    fn variant_of(&self, choice: &Choice, agent: &str, variants: &[String]) -> Option<String> {
        let known = |name: &String| variants.contains(name);
        match &choice.variant {
            Some(chosen) => Some(chosen.clone()).filter(known),
            None => self.engine.agent(agent).variant.filter(known),
        }
    }

    /// Every model, by provider where there are several; the current one is always among them.
    fn model_options(&self, current: &ModelId) -> SessionConfigSelectOptions {
        let catalog = self.engine.catalog();
        let mut ids: Vec<ModelId> = catalog.models.iter().map(|info| info.id.clone()).collect();
        if !ids.contains(current) {
            ids.insert(0, current.clone());
        }
        let mut providers: Vec<&str> = Vec::new();
        for id in &ids {
            if !providers.contains(&id.provider()) {
                providers.push(id.provider());
            }
        }
        let option = |id: &ModelId| SessionConfigSelectOption::new(id.to_string(), id.model().to_owned());
        if let [_] = providers[..] {
            return SessionConfigSelectOptions::Ungrouped(ids.iter().map(option).collect());
        }
        let group = |provider: &&str| {
            let of_it = ids.iter().filter(|id| id.provider() == *provider).map(option).collect();
            SessionConfigSelectGroup::new((*provider).to_owned(), (*provider).to_owned(), of_it)
        };
        SessionConfigSelectOptions::Grouped(providers.iter().map(group).collect())
    }

    pub(super) fn set_mode(&self, mode: &str) -> Result<(), Failure> {
        let agents = self.agents();
        if !agents.iter().any(|agent| agent == mode) {
            let mode = one_line(mode, 60);
            return Err(Failure::params(format!("there is no mode {mode:?}; there are {}", agents.join(", "))));
        }
        self.choose(|choice| choice.agent = Some(mode.to_owned()));
        Ok(())
    }

    pub(super) fn set_model(&self, model: &str) -> Result<(), Failure> {
        let current = self.model_of(&self.choice());
        let model = self.engine.registry().resolve(model, Some(&current));
        let model = model.map_err(|unknown| Failure::params(unknown.to_string()))?;
        self.choose(|choice| choice.model = Some(model));
        Ok(())
    }

    pub(super) fn set_option(&self, option: &str, value: &SessionConfigOptionValue) -> Result<(), Failure> {
        let text = match value {
            SessionConfigOptionValue::ValueId { value } => Some(value.0.to_string()),
            _ => None,
        };
        let flag = match value {
            SessionConfigOptionValue::Boolean { value } => Some(*value),
            _ => None,
        };
        let wrong_type = || Failure::params(format!("value: {option} takes another type"));
        match option {
            MODE => self.set_mode(&text.ok_or_else(wrong_type)?),
            MODEL => self.set_model(&text.ok_or_else(wrong_type)?),
            VARIANT => self.set_variant(&text.ok_or_else(wrong_type)?),
            TRUST => {
                let trust = flag.ok_or_else(wrong_type)?;
                self.choose(|choice| choice.trust = trust);
                Ok(())
            }
            other => Err(Failure::params(format!("there is no config option {:?}", one_line(other, 60)))),
        }
    }

    fn set_variant(&self, variant: &str) -> Result<(), Failure> {
        let model = self.model_of(&self.choice());
        let known = self.engine.registry().variants(&model);
        if variant != NO_VARIANT && !known.iter().any(|name| name == variant) {
            return Err(Failure::params(format!("{model} has no variant {:?}", one_line(variant, 60))));
        }
        self.choose(|choice| choice.variant = Some(variant.to_owned()));
        Ok(())
    }

    /// What is new to the client about modes and options. What it was told is remembered.
    pub(super) fn option_news(&self) -> Vec<SessionUpdate> {
        let (mode, options) = (self.modes().current_mode_id, self.config_options());
        let (new_mode, new_options) = self.note_told(&mode, &options);
        let mode = new_mode.then(|| SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode)));
        let options = new_options.then(|| SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)));
        mode.into_iter().chain(options).collect()
    }
}

/// `code` is shown as `Code`.
fn title_case(name: &str) -> String {
    let mut letters = name.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
