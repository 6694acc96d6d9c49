//! MCP servers: programs and addresses that offer tools, prompts and resources.
#![allow(dead_code)]

mod limited;
mod lines;
mod pace;
mod pipe;
