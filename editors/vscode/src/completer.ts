// How a text may go on at the cursor: what the server is asked, what of its answer fits, and what need not be asked
// again. Nothing here knows the editor.
import type { CancellationToken } from "vscode-languageclient/node";
import type { Wire } from "./chat";
import type { CompletionInlineResult, Position, Problem, Range } from "./protocol";
import { notOffered } from "./server";

/** More is nothing that people write by hand, and every question would carry all of it. */
export const MOST_CHARACTERS = 1_000_000;

const MOST_TOLD = 50;

/** A document, and the cursor in it. */
export interface Spot {
  document: string;
  version: number;
  before: string;
  after: string;
  path?: string;
}

export interface Proposal {
  text: string;
  /** So many characters before the cursor, and so many behind it, are replaced. */
  back: number;
  ahead: number;
}

/** Neither is there if the model has nothing to say, or nobody listens any more. */
export interface Outcome {
  proposal?: Proposal;
  problem?: Problem;
}

export class Completer {
  /** Whether the server may know the method; nothing is asked if not. */
  offered = true;
  private last: (Spot & { proposal?: Proposal }) | undefined;
  private readonly told = new Set<string>();

  constructor(private readonly wire: Wire) {}

  /** Another server may offer what the last one did not, and fail for other reasons. */
  serverStarted(): void {
    this.offered = true;
    this.told.clear();
  }

  /** What the last answer says about this place, also when some of it was typed since; undefined if it says nothing. */
  known(spot: Spot): Outcome | undefined {
    const { last } = this;
    if (!last || last.document !== spot.document || last.after !== spot.after || !spot.before.startsWith(last.before)) {
      return undefined;
    }
    const typed = spot.before.slice(last.before.length);
    if (typed === "") return { proposal: last.proposal };
    const { text = "", back, ahead } = last.proposal ?? {};
    if (back !== 0 || ahead !== 0 || text === typed || !text.startsWith(typed)) return undefined;
    return { proposal: { text: text.slice(typed.length), back, ahead } };
  }

  async ask(spot: Spot, token: CancellationToken): Promise<Outcome> {
    const refused = this.refusal(spot);
    if (refused) return { problem: { type: "info", message: refused } };
    const position = placeOf(spot.before);
    const params = { docText: spot.before + spot.after, docVersion: spot.version, position, path: spot.path };
    let answer: CompletionInlineResult;
    try {
      answer = (await this.wire.request<CompletionInlineResult | null>("completion/inline", params, token)) ?? {};
    } catch (error) {
      if (token.isCancellationRequested) return {};
      if (notOffered(error)) this.offered = false;
      const message = error instanceof Error ? error.message : String(error);
      return { problem: { type: "warning", message: this.refusal(spot) ?? message } };
    }
    if (token.isCancellationRequested) return {};
    const proposal = answer.items
      ?.filter((item) => item.docVersion === spot.version && item.text !== "")
      .map((item) => fitting(item, spot, position))
      .find((one) => one !== undefined);
    // What failed may go better the next time; what was answered is not asked again.
    if (proposal || !answer.error || answer.error.type === "info") this.last = { ...spot, proposal };
    return proposal ? { proposal } : { problem: answer.error };
  }

  /** Whether this was not said before. */
  isNews({ message }: Problem): boolean {
    if (this.told.has(message)) return false;
    if (this.told.size >= MOST_TOLD) this.told.clear();
    this.told.add(message);
    return true;
  }

  private refusal(spot: Spot): string | undefined {
    if (!this.offered) return "This server does not complete at the cursor.";
    if (spot.before.length + spot.after.length > MOST_CHARACTERS) return "This text is too large to be completed.";
    return undefined;
  }
}

/** Where the end of a text is, counted from 1. */
function placeOf(text: string): Position {
  return { line: text.split("\n").length, character: text.length - text.lastIndexOf("\n") };
}

/** A proposal is shown on the cursor's line and around the cursor, or not at all. */
function fitting(item: { text: string; range: Range }, spot: Spot, at: Position): Proposal | undefined {
  const { start, end } = item.range;
  const back = at.character - start.character;
  const ahead = end.character - at.character;
  const behind = /^[^\r\n]*/.exec(spot.after)![0].length;
  if (start.line !== at.line || end.line !== at.line || back < 0 || ahead < 0 || ahead > behind) return undefined;
  return { text: item.text, back, ahead };
}
