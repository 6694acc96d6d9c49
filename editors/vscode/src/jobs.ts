// What tools run in the background: the list as the server tells it, and how it is put into words. Nothing here knows
// the editor.
import type { Wire } from "./chat";
import type { JobOutput, JobSummary } from "./protocol";
import { notOffered } from "./server";

const WORDS: Record<string, string> = { running: "running", completed: "ended", failed: "failed", killed: "killed" };

export class Jobs {
  /** Those that run first, and of each kind the newest. */
  list: JobSummary[] = [];

  constructor(
    private readonly wire: Wire,
    private readonly changed: () => void,
  ) {}

  get running(): JobSummary[] {
    return this.list.filter((job) => job.status === "running");
  }

  get(id: string): JobSummary | undefined {
    return this.list.find((job) => job.id === id);
  }

  updated({ jobs }: { jobs: JobSummary[] }): void {
    const rank = (job: JobSummary) => (job.status === "running" ? 0 : 1);
    const number = (job: JobSummary) => Number(/\d+$/.exec(job.id)?.[0] ?? 0);
    this.list = [...jobs].sort((a, b) => rank(a) - rank(b) || number(b) - number(a));
    this.changed();
  }

  /** The server is gone, and its jobs with it. */
  lost(): void {
    if (this.list.length > 0) this.updated({ jobs: [] });
  }

  async refresh(): Promise<void> {
    try {
      this.updated(await this.wire.request<{ jobs: JobSummary[] }>("jobs/list", {}));
    } catch (error) {
      throw notOffered(error) ? new Error("This server has no background jobs.") : error;
    }
  }

  read(id: string): Promise<JobOutput> {
    return this.wire.request<JobOutput>("jobs/readOutput", { jobId: id });
  }

  /** False if it had ended already. */
  async kill(id: string): Promise<boolean> {
    return (await this.wire.request<{ killed: boolean }>("jobs/kill", { jobId: id })).killed;
  }
}

/** `running`, `failed with exit code 1`… */
export function stateText({ status, exitCode }: Pick<JobSummary, "status" | "exitCode">): string {
  const word = WORDS[status] ?? status;
  return status === "failed" && typeof exitCode === "number" ? `${word} with exit code ${exitCode}` : word;
}

/** Empty for none. */
export function countText(count: number): string {
  if (count === 0) return "";
  return count === 1 ? "1 background job" : `${count} background jobs`;
}

/** A job as a page: its command, what it printed last, and how it ended. */
export function pageText(job: JobSummary, output: JobOutput): string {
  const printed = output.lines.map((line) => line.text);
  const nothing = job.status === "running" ? "(nothing printed so far)" : "(nothing printed)";
  const end = job.status === "running" ? [] : ["", `[${stateText(job)}${job.elapsed && ` after ${job.elapsed}`}]`];
  return [`$ ${job.summary ?? job.label}`, "", ...(printed.length > 0 ? printed : [nothing]), ...end, ""].join("\n");
}
