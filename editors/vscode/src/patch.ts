// A unified diff and the text it belongs to, so that the diff editor can show both sides.

/** The text after the change; undefined if the diff does not fit it. */
export function apply(text: string, diff: string): string | undefined {
  return walk(text, diff, false);
}

/** The text before the change; undefined if the diff does not fit it. */
export function revert(text: string, diff: string): string | undefined {
  return walk(text, diff, true);
}

/** Both sides as far as the diff itself tells them. */
export function sides(diff: string): { before: string; after: string } {
  const before: string[] = [];
  const after: string[] = [];
  for (const line of hunkLines(diff)) {
    if (line.sign !== "+" && line.sign !== "@") before.push(line.text);
    if (line.sign !== "-" && line.sign !== "@") after.push(line.text);
    if (line.sign === "@" && before.length + after.length > 0) {
      before.push("⋯");
      after.push("⋯");
    }
  }
  return { before: before.join("\n"), after: after.join("\n") };
}

interface HunkLine {
  sign: " " | "+" | "-" | "@";
  text: string;
  /** Of a heading: where the hunk begins, and how many lines it has, before and after. */
  old?: [number, number];
  new?: [number, number];
}

function walk(text: string, diff: string, backwards: boolean): string | undefined {
  const ending = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text === "" ? [] : text.split(/\r?\n/);
  const result: string[] = [];
  const [drop, add] = backwards ? ["+", "-"] : ["-", "+"];
  let at = 0;
  let hunks = 0;
  for (const line of hunkLines(diff)) {
    if (line.sign === "@") {
      const [start, count] = (backwards ? line.new : line.old) ?? [0, 0];
      // A hunk that has no lines on this side stands behind the line that it names.
      const first = count === 0 ? start : start - 1;
      if (first < at || first > lines.length) return undefined;
      result.push(...lines.slice(at, first));
      at = first;
      hunks += 1;
    } else if (line.sign === add) {
      result.push(line.text);
    } else {
      if (lines[at] !== line.text) return undefined;
      if (line.sign !== drop) result.push(line.text);
      at += 1;
    }
  }
  if (hunks === 0) return undefined;
  result.push(...lines.slice(at));
  // A new file's diff says nothing about the empty line that `split` sees behind the last line break.
  if (text === "" && result.length > 0 && !diff.includes("\\ No newline")) result.push("");
  return result.join(ending);
}

function* hunkLines(diff: string): Generator<HunkLine> {
  let left = { old: 0, new: 0 };
  for (const line of diff.split(/\r?\n/)) {
    const heading = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (heading) {
      const [, oldStart, oldCount = "1", newStart, newCount = "1"] = heading;
      left = { old: Number(oldCount), new: Number(newCount) };
      yield { sign: "@", text: line, old: [Number(oldStart), left.old], new: [Number(newStart), left.new] };
      continue;
    }
    // Counted, because a removed line may look like a heading of the next file.
    if (left.old <= 0 && left.new <= 0) continue;
    const sign = line[0] ?? " ";
    if (sign === "+") left.new -= 1;
    else if (sign === "-") left.old -= 1;
    else if (sign === " ") left = { old: left.old - 1, new: left.new - 1 };
    else continue;
    yield { sign, text: line.slice(1) };
  }
}
