//! The list itself: pure, and consistent after every change or unchanged.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::super::super::replay::{priority_from, priority_word, status_word, task_from_json, task_to_json};
use crate::tool::{Arguments, TaskDetails, TaskItem, TaskPriority, TaskStatus};

const MAX_TASKS: usize = 200;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TaskList {
    tasks: Vec<TaskItem>,
    next_id: u64,
    active_summary: Option<String>,
}

impl TaskList {
    /// Carries an operation out, wholly or not at all. Returns what is new, for the model.
    pub(crate) fn apply(&mut self, arguments: &Arguments) -> Result<String, String> {
        let mut changed = self.clone();
        let news = changed.change(arguments)?;
        *self = changed;
        Ok(news)
    }

    fn change(&mut self, arguments: &Arguments) -> Result<String, String> {
        let op = arguments.get("op").and_then(Value::as_str).unwrap_or_default();
        match op {
            "read" => {}
            "plan" => {
                *self = Self::default();
                self.add(arguments)?;
            }
            "add" => self.add(arguments)?,
            "update" => self.update(arguments)?,
            "start" => self.start(arguments)?,
            "complete" => return self.complete(arguments),
            "delete" => {
                let ids = self.ids(arguments)?;
                self.tasks.retain(|task| !ids.contains(&task.id));
                for task in &mut self.tasks {
                    task.blocked_by.retain(|id| !ids.contains(id));
                }
            }
            "clear" => *self = Self::default(),
            other => return Err(format!("There is no operation {other:?}.")),
        }
        Ok(String::new())
    }

    fn add(&mut self, arguments: &Arguments) -> Result<(), String> {
        let many = arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let all: Vec<&Value> = arguments.get("task").into_iter().filter(|one| one.is_object()).chain(many).collect();
        if all.is_empty() {
            return Err("Give a task, or tasks.".to_owned());
        }
        if self.tasks.len() + all.len() > MAX_TASKS {
            return Err(format!("A list has at most {MAX_TASKS} tasks."));
        }
        for value in all {
            self.next_id += 1;
            let id = self.next_id;
            let mut task = TaskItem {
                id,
                subject: String::new(),
                description: String::new(),
                status: TaskStatus::Pending,
                priority: TaskPriority::Medium,
                blocked_by: Vec::new(),
            };
            fill(&mut task, value)?;
            if task.subject.trim().is_empty() || task.description.trim().is_empty() {
                return Err("Every task needs a subject and a description.".to_owned());
            }
            self.tasks.push(task);
        }
        self.check()
    }

    fn update(&mut self, arguments: &Arguments) -> Result<(), String> {
        let id = arguments.get("id").and_then(Value::as_u64).ok_or("update needs an id.")?;
        let value = arguments.get("task").filter(|task| task.is_object()).ok_or("update needs a task.")?;
        if value.get("status").is_some() {
            return Err("The status changes by start and complete only.".to_owned());
        }
        let task = self.tasks.iter_mut().find(|task| task.id == id).ok_or_else(|| unknown(id))?;
        fill(task, value)?;
        if task.subject.trim().is_empty() || task.description.trim().is_empty() {
            return Err("Every task needs a subject and a description.".to_owned());
        }
        self.check()
    }

    fn start(&mut self, arguments: &Arguments) -> Result<(), String> {
        let summary = arguments.get("active_summary").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if summary.is_empty() {
            return Err("start needs an active_summary: a few words about what you are doing.".to_owned());
        }
        for id in self.ids(arguments)? {
            if self.is_blocked(id) {
                return Err(format!("Task {id} is blocked by a task that is not done."));
            }
            let task = self.tasks.iter_mut().find(|task| task.id == id).ok_or_else(|| unknown(id))?;
            if task.status == TaskStatus::Done {
                return Err(format!("Task {id} is done already."));
            }
            task.status = TaskStatus::InProgress;
        }
        self.active_summary = Some(summary.to_owned());
        Ok(())
    }

    fn complete(&mut self, arguments: &Arguments) -> Result<String, String> {
        let ids = self.ids(arguments)?;
        let blocked: HashSet<u64> = self.tasks.iter().map(|task| task.id).filter(|id| self.is_blocked(*id)).collect();
        for id in &ids {
            if self.is_blocked(*id) {
                return Err(format!("Task {id} is blocked by a task that is not done."));
            }
            let task = self.tasks.iter_mut().find(|task| task.id == *id).ok_or_else(|| unknown(*id))?;
            task.status = TaskStatus::Done;
        }
        if !self.tasks.iter().any(|task| task.status == TaskStatus::InProgress) {
            self.active_summary = None;
        }
        let freed: Vec<String> = blocked.iter().filter(|id| !self.is_blocked(**id)).map(|id| format!("{id}")).collect();
        Ok(if freed.is_empty() { String::new() } else { format!("No longer blocked: {}.\n", freed.join(", ")) })
    }

    fn ids(&self, arguments: &Arguments) -> Result<Vec<u64>, String> {
        let one = arguments.get("id").and_then(Value::as_u64);
        let many = arguments.get("ids").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_u64);
        let ids: Vec<u64> = one.into_iter().chain(many).collect();
        if ids.is_empty() {
            return Err("Give an id, or ids.".to_owned());
        }
        match ids.iter().find(|id| !self.tasks.iter().any(|task| task.id == **id)) {
            Some(missing) => Err(unknown(*missing)),
            None => Ok(ids),
        }
    }

    fn is_blocked(&self, id: u64) -> bool {
        let open = |other: &u64| self.tasks.iter().any(|task| task.id == *other && task.status != TaskStatus::Done);
        self.tasks.iter().find(|task| task.id == id).is_some_and(|task| task.blocked_by.iter().any(open))
    }

    /// Whatever blocks a task exists, is another task, and is not itself waiting for it.
    fn check(&self) -> Result<(), String> {
        for task in &self.tasks {
            for other in &task.blocked_by {
                if *other == task.id {
                    return Err(format!("Task {other} cannot block itself."));
                }
                if !self.tasks.iter().any(|task| task.id == *other) {
                    return Err(unknown(*other));
                }
            }
            let (mut waiting, mut seen) = (task.blocked_by.clone(), HashSet::new());
            while let Some(id) = waiting.pop() {
                if id == task.id {
                    return Err(format!("Tasks would block each other in a circle, through task {id}."));
                }
                if seen.insert(id) {
                    waiting.extend(self.tasks.iter().filter(|task| task.id == id).flat_map(|task| &task.blocked_by));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn is_all_done(&self) -> bool {
        !self.tasks.is_empty() && self.tasks.iter().all(|task| task.status == TaskStatus::Done)
    }

    pub(crate) fn details(&self) -> TaskDetails {
        TaskDetails { tasks: self.tasks.clone(), active_summary: self.active_summary.clone() }
    }

    pub(crate) fn to_text(&self) -> String {
        if self.tasks.is_empty() {
            return "The task list is empty.".to_owned();
        }
        let mut text = String::new();
        for task in &self.tasks {
            let blocked =
                if self.is_blocked(task.id) { format!(", blocked by {:?}", task.blocked_by) } else { String::new() };
            let (status, priority) = (status_word(task.status), priority_word(task.priority));
            text.push_str(&format!("{}. [{status}] {} ({priority}{blocked})\n", task.id, task.subject));
            text.push_str(&format!("   {}\n", task.description));
        }
        text
    }

    /// For the store.
    pub(crate) fn to_json(&self) -> Value {
        json!({"next": self.next_id, "active": self.active_summary,
            "tasks": self.tasks.iter().map(task_to_json).collect::<Vec<_>>()})
    }

    pub(crate) fn from_json(value: &Value) -> Self {
        let tasks: Vec<TaskItem> =
            value.get("tasks").and_then(Value::as_array).into_iter().flatten().filter_map(task_from_json).collect();
        let highest = tasks.iter().map(|task| task.id).max().unwrap_or(0);
        Self {
            next_id: value.get("next").and_then(Value::as_u64).unwrap_or(0).max(highest),
            active_summary: value.get("active").and_then(Value::as_str).map(str::to_owned),
            tasks,
        }
    }
}

fn unknown(id: u64) -> String {
    format!("There is no task {id}.")
}

fn fill(task: &mut TaskItem, value: &Value) -> Result<(), String> {
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("subject", Value::String(text)) => task.subject.clone_from(text),
            ("description", Value::String(text)) => task.description.clone_from(text),
            ("priority", Value::String(word)) => {
                task.priority = priority_from(word).ok_or_else(|| format!("There is no priority {word:?}."))?;
            }
            ("blocked_by", Value::Array(ids)) => {
                task.blocked_by = ids.iter().filter_map(Value::as_u64).collect();
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(list: &mut TaskList, value: Value) -> Result<String, String> {
        list.apply(value.as_object().unwrap())
    }

    fn planned() -> TaskList {
        let mut list = TaskList::default();
        apply(
            &mut list,
            json!({"op": "plan", "tasks": [
                {"subject": "one", "description": "d"},
                {"subject": "two", "description": "d", "blocked_by": [1], "priority": "high"},
            ]}),
        )
        .unwrap();
        list
    }

    #[test]
    fn a_plan_is_worked_off() {
        let mut list = planned();
        assert!(
            apply(&mut list, json!({"op": "start", "id": 2, "active_summary": "x"})).unwrap_err().contains("blocked")
        );
        assert!(apply(&mut list, json!({"op": "start", "id": 1})).unwrap_err().contains("active_summary"));
        apply(&mut list, json!({"op": "start", "ids": [1], "active_summary": "doing one"})).unwrap();
        assert_eq!(list.details().active_summary.as_deref(), Some("doing one"));
        assert_eq!(apply(&mut list, json!({"op": "complete", "id": 1})).unwrap(), "No longer blocked: 2.\n");
        assert_eq!(list.details().active_summary, None);
        apply(&mut list, json!({"op": "start", "id": 2, "active_summary": "x"})).unwrap();
        apply(&mut list, json!({"op": "complete", "id": 2})).unwrap();
        assert!(list.is_all_done());
        assert!(apply(&mut list, json!({"op": "start", "id": 2, "active_summary": "x"})).unwrap_err().contains("done"));
    }

    #[test]
    fn what_would_not_be_consistent_changes_nothing() {
        let mut list = planned();
        let before = list.clone();
        for bad in [
            json!({"op": "update", "id": 1, "task": {"blocked_by": [2]}}),
            json!({"op": "update", "id": 1, "task": {"blocked_by": [1]}}),
            json!({"op": "update", "id": 1, "task": {"blocked_by": [9]}}),
            json!({"op": "update", "id": 1, "task": {"status": "done"}}),
            json!({"op": "update", "id": 1, "task": {"subject": " "}}),
            json!({"op": "update", "id": 7, "task": {"subject": "x"}}),
            json!({"op": "add", "tasks": [{"subject": "ok", "description": "d"}, {"subject": "x"}]}),
            json!({"op": "add"}),
            json!({"op": "add", "task": {"subject": "a", "description": "b", "priority": "urgent"}}),
            json!({"op": "complete", "id": 2}),
            json!({"op": "delete", "ids": [1, 9]}),
            json!({"op": "dance"}),
            json!({}),
        ] {
            assert!(apply(&mut list, bad.clone()).is_err(), "{bad}");
            assert_eq!(list, before, "{bad}");
        }
    }

    #[test]
    fn deleting_frees_and_ids_are_not_used_again() {
        let mut list = planned();
        apply(&mut list, json!({"op": "delete", "id": 1})).unwrap();
        assert!(!list.is_blocked(2));
        apply(&mut list, json!({"op": "add", "task": {"subject": "three", "description": "d"}})).unwrap();
        assert!(list.to_text().contains("3. [pending] three (medium)"), "{}", list.to_text());
        assert_eq!(TaskList::from_json(&list.to_json()), list);
        apply(&mut list, json!({"op": "clear"})).unwrap();
        assert_eq!(list.to_text(), "The task list is empty.");
    }
}
