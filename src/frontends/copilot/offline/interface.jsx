
const COLOURS = API.dark
  ? { page: "#14161a", panel: "#1d2026", line: "#343a44", text: "#e6e8ec", muted: "#9aa3b2", accent: "#6ea8fe", error: "#ff8a80" }
  : { page: "#f6f7f9", panel: "#ffffff", line: "#d8dce3", text: "#1b1f27", muted: "#5c6675", accent: "#1f5fd0", error: "#b3261e" };

const STYLES = {
  page: { minHeight: "100%", margin: 0, padding: 16, background: COLOURS.page, color: COLOURS.text, font: "14px/1.5 system-ui, sans-serif" },
  bar: { display: "flex", flexWrap: "wrap", gap: 8, margin: "12px 0" },
  panel: { background: COLOURS.panel, border: `1px solid ${COLOURS.line}`, borderRadius: 8, padding: 12, marginBottom: 12 },
  muted: { color: COLOURS.muted },
  error: { color: COLOURS.error },
  input: { display: "block", width: "100%", boxSizing: "border-box", padding: 6, color: COLOURS.text, background: COLOURS.page, border: `1px solid ${COLOURS.line}`, borderRadius: 4, font: "inherit" },
  label: { display: "block", minWidth: 180, flex: "1 1 180px" },
  button: { padding: "6px 12px", color: "#ffffff", background: COLOURS.accent, border: 0, borderRadius: 4, cursor: "pointer", font: "inherit" },
  plain: { padding: "6px 12px", color: COLOURS.text, background: "transparent", border: `1px solid ${COLOURS.line}`, borderRadius: 4, cursor: "pointer", font: "inherit" },
  table: { width: "100%", borderCollapse: "collapse" },
  cell: { padding: "6px 8px", textAlign: "left", borderBottom: `1px solid ${COLOURS.line}`, verticalAlign: "top" },
};

/** What an input holds, as the API wants it. */
function typed(input, value) {
  if (value === undefined || value === "") return undefined;
  if (input.kind === "number") return Number(value);
  if (input.kind === "json") return JSON.parse(value);
  return value;
}

/** The values of the inputs that belong to one place. */
function gathered(operation, values, place) {
  const found = {};
  for (const input of operation.inputs) {
    const value = input.place === place ? typed(input, values[input.key]) : undefined;
    if (value !== undefined) found[input.name] = value;
  }
  return found;
}

/** One call of the API; without a way to reach it, the sample stands in for the answer. */
async function send(request, operation, values, credentials) {
  if (!request) return operation.sample;
  const query = gathered(operation, values, "query");
  const headers = gathered(operation, values, "header");
  for (const scheme of API.auth) {
    const secret = credentials[scheme.name];
    if (secret && scheme.place === "query") query[scheme.field] = secret;
    else if (secret) headers[scheme.field] = scheme.prefix + secret;
  }
  if (operation.query) {
    const variables = gathered(operation, values, "argument");
    const answer = await request({ method: "POST", path: "", query, headers, body: { query: operation.query, variables } });
    if (answer && answer.errors && answer.errors.length) throw new Error(answer.errors[0].message);
    return answer && answer.data ? answer.data[operation.field] : answer;
  }
  const steps = gathered(operation, values, "path");
  const path = operation.path.replace(/\{([^}]+)\}/g, (whole, name) => (name in steps ? encodeURIComponent(steps[name]) : whole));
  const whole = operation.inputs.find((input) => input.place === "whole");
  const body = whole ? typed(whole, values[whole.key]) : gathered(operation, values, "body");
  const hasBody = whole || operation.inputs.some((input) => input.place === "body");
  return request({ method: operation.method, path, query, headers, body: hasBody ? body : undefined });
}

function shown(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function InputField({ input, value, onChange }) {
  const set = (event) => onChange(input.kind === "checkbox" ? event.target.checked : event.target.value);
  let control = <input style={STYLES.input} type={input.kind === "number" ? "number" : "text"} required={input.required} value={value ?? ""} onChange={set} />;
  if (input.kind === "checkbox") {
    control = <input type="checkbox" checked={value === true} onChange={set} />;
  } else if (input.kind === "select") {
    control = (
      <select style={STYLES.input} required={input.required} value={value ?? ""} onChange={set}>
        <option value="" />
        {input.options.map((option) => <option key={option} value={option}>{option}</option>)}
      </select>
    );
  } else if (input.kind === "json") {
    control = <textarea style={STYLES.input} rows={4} required={input.required} value={value ?? ""} onChange={set} />;
  }
  return (
    <label style={STYLES.label}>
      <span>{input.name}{input.required ? " *" : ""}</span>
      {control}
      {input.hint ? <small style={STYLES.muted}>{input.hint}</small> : null}
    </label>
  );
}

function DataTable({ rows }) {
  const [page, setPage] = useState(0);
  const columns = useMemo(() => {
    const names = new Set();
    for (const row of rows.slice(0, 50)) {
      if (row && typeof row === "object") Object.keys(row).forEach((name) => names.add(name));
    }
    return [...names].slice(0, 10);
  }, [rows]);
  if (!rows.length) return <p style={STYLES.muted}>Nothing was found.</p>;
  const size = API.pageSize || rows.length;
  const pages = Math.ceil(rows.length / size);
  const visible = rows.slice(page * size, (page + 1) * size);
  return (
    <div style={{ overflowX: "auto" }}>
      <table style={STYLES.table}>
        <thead>
          <tr>{(columns.length ? columns : ["value"]).map((name) => <th key={name} style={STYLES.cell}>{name}</th>)}</tr>
        </thead>
        <tbody>
          {visible.map((row, index) => (
            <tr key={index}>
              {columns.length
                ? columns.map((name) => <td key={name} style={STYLES.cell}>{shown(row && row[name])}</td>)
                : <td style={STYLES.cell}>{shown(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {pages > 1 ? (
        <div style={STYLES.bar}>
          <button type="button" style={STYLES.plain} disabled={page === 0} onClick={() => setPage(page - 1)}>Previous</button>
          <span>Page {page + 1} of {pages}</span>
          <button type="button" style={STYLES.plain} disabled={page + 1 === pages} onClick={() => setPage(page + 1)}>Next</button>
        </div>
      ) : null}
    </div>
  );
}

function DetailView({ value }) {
  if (value === null || value === undefined) return <p style={STYLES.muted}>Done; there is nothing to show.</p>;
  if (typeof value !== "object") return <p>{shown(value)}</p>;
  return (
    <table style={STYLES.table}>
      <tbody>
        {Object.entries(value).map(([name, part]) => (
          <tr key={name}>
            <th style={STYLES.cell}>{name}</th>
            <td style={STYLES.cell}>{shown(part)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function OperationPanel({ operation, request, credentials }) {
  const [values, setValues] = useState({});
  const [state, setState] = useState({ status: "idle" });
  const submit = async (event) => {
    event.preventDefault();
    setState({ status: "loading" });
    try {
      setState({ status: "done", result: await send(request, operation, values, credentials) });
    } catch (error) {
      setState({ status: "failed", message: error && error.message ? error.message : String(error) });
    }
  };
  return (
    <section style={STYLES.panel}>
      <h3 style={{ margin: 0 }}>{operation.title}{operation.deprecated ? " (deprecated)" : ""}</h3>
      <p style={STYLES.muted}><code>{operation.method} {operation.path}</code></p>
      <form onSubmit={submit}>
        <div style={STYLES.bar}>
          {operation.inputs.map((input) => (
            <InputField key={input.key} input={input} value={values[input.key]} onChange={(value) => setValues({ ...values, [input.key]: value })} />
          ))}
        </div>
        <button type="submit" style={STYLES.button} disabled={state.status === "loading"}>
          {operation.inputs.length ? "Send" : "Load"}
        </button>
      </form>
      {state.status === "loading" ? <p style={STYLES.muted}>Loading…</p> : null}
      {state.status === "failed" ? <p role="alert" style={STYLES.error}>{state.message}</p> : null}
      {state.status === "done" && !request ? <p style={STYLES.muted}>Sample data: the interface is not connected to the API.</p> : null}
      {state.status === "done" ? (Array.isArray(state.result) ? <DataTable rows={state.result} /> : <DetailView value={state.result} />) : null}
    </section>
  );
}

function GroupView({ group, request, credentials }) {
  return (
    <div>
      <h2>{group.name}</h2>
      {group.operations.map((operation) => (
        <OperationPanel key={operation.key} operation={operation} request={request} credentials={credentials} />
      ))}
    </div>
  );
}

function CredentialsForm({ credentials, onChange }) {
  return (
    <section style={STYLES.panel}>
      <h3 style={{ margin: 0 }}>Credentials</h3>
      <div style={STYLES.bar}>
        {API.auth.map((scheme) => (
          <label key={scheme.name} style={STYLES.label}>
            <span>{scheme.name}</span>
            <input
              style={STYLES.input}
              type="password"
              autoComplete="off"
              value={credentials[scheme.name] ?? ""}
              onChange={(event) => onChange({ ...credentials, [scheme.name]: event.target.value })}
            />
          </label>
        ))}
      </div>
    </section>
  );
}

export default function App({ request }) {
  const [current, setCurrent] = useState(0);
  const [credentials, setCredentials] = useState({});
  const Page = PAGES[current];
  return (
    <main style={STYLES.page}>
      <h1 style={{ margin: 0 }}>{API.title} <small style={STYLES.muted}>{API.version}</small></h1>
      {API.description ? <p>{API.description}</p> : null}
      {API.auth.length ? <CredentialsForm credentials={credentials} onChange={setCredentials} /> : null}
      <nav style={STYLES.bar}>
        {API.groups.map((group, index) => (
          <button key={group.name} type="button" style={index === current ? STYLES.button : STYLES.plain} onClick={() => setCurrent(index)}>
            {group.name}
          </button>
        ))}
      </nav>
      <Page key={current} request={request} credentials={credentials} />
    </main>
  );
}
