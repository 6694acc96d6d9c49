//! Background jobs. Nothing starts any yet, so there are none, and clients are told so.

use custom_methods::Empty;
use custom_methods::jobs::{
    JobsKillParams, JobsKillResult, JobsListResult, JobsReadOutputParams, JobsReadOutputResult,
};
use custom_methods::methods::{JobsKill, JobsList, JobsReadOutput};
use tower_lsp::jsonrpc::Result;

use super::super::service::{Answer, EcaServer};

impl Answer<JobsList> for EcaServer {
    async fn answer(&self, _: Empty) -> Result<JobsListResult> {
        Ok(JobsListResult { jobs: Vec::new() })
    }
}

impl Answer<JobsKill> for EcaServer {
    async fn answer(&self, _: JobsKillParams) -> Result<JobsKillResult> {
        Ok(JobsKillResult { killed: false })
    }
}

impl Answer<JobsReadOutput> for EcaServer {
    async fn answer(&self, _: JobsReadOutputParams) -> Result<JobsReadOutputResult> {
        Ok(JobsReadOutputResult { lines: Vec::new(), status: None, exit_code: None })
    }
}
