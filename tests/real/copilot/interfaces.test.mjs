// Interfaces as the application gets them: compiled by esbuild and rendered by React.

import assert from "node:assert/strict";
import test from "node:test";
import { Application, model, shown, within } from "./application.mjs";

const pet = { type: "object", required: ["id"], properties: {
  id: { type: "integer" }, name: { type: "string", description: "It's a name: eval( </script> `x`" },
  kind: { type: "string", enum: ["cat", "dog"] }, good: { type: "boolean" },
} };

const openapi = {
  openapi: "3.0.3",
  info: { title: "Pet \"Shop\" & Co", version: "1.2", description: "Uses process.env and document.cookie." },
  servers: [{ url: "https://pets.example" }],
  paths: {
    "/pets": {
      get: { tags: ["pets"], summary: "List pets", parameters: [{ name: "limit", in: "query", schema: { type: "integer" } }],
        responses: { 200: { description: "ok", content: { "application/json": { schema: { type: "array", items: { $ref: "#/components/schemas/Pet" } } } } } } },
      post: { tags: ["pets"], summary: "Add a pet", requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } } }, responses: { 201: { description: "ok" } } },
    },
    "/pets/{id}": { delete: { tags: ["owners and others"], parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }], responses: {} } },
  },
  components: { schemas: { Pet: pet }, securitySchemes: { key: { type: "apiKey", in: "header", name: "X-Key" } } },
};

const yaml = `
openapi: 3.1.0
info: {title: Yaml shop, version: '1'}
paths:
  /things:
    get:
      responses:
        '200': {description: ok, content: {application/json: {schema: {type: array, items: {type: string}}}}}
`;

const swagger = {
  swagger: "2.0", info: { title: "Old shop", version: "1" }, host: "old.example", basePath: "/v1",
  paths: { "/things/{id}": { put: { parameters: [{ name: "id", in: "path", required: true, type: "string" },
    { name: "body", in: "body", schema: { $ref: "#/definitions/Thing" } }], responses: { 200: { schema: { $ref: "#/definitions/Thing" } } } } } },
  definitions: { Thing: { type: "object", properties: { size: { type: "number" }, parent: { $ref: "#/definitions/Thing" } } } },
};

const sdl = `
"""A shop"""
type Query { pets(kind: Kind, first: Int = 10): [Pet!]! }
type Mutation { addPet(input: NewPet!): Pet }
type Pet { id: ID! name: String friends: [Pet!]! }
enum Kind { CAT DOG }
input NewPet { name: String! }
`;

test("without a model every specification gives an interface that compiles and renders", async (t) => {
  const application = new Application(t);
  const { capabilities } = await application.request("initialize", { clientName: "experience-ui", capabilities: { streaming: true } });
  assert.equal(capabilities.streaming, true);
  for (const [spec, title, ...texts] of [
    [openapi, "Pet &quot;Shop&quot; &amp; Co", "List pets", "Add a pet", "owners and others", "limit"],
    [JSON.stringify(openapi), "Pet &quot;Shop&quot; &amp; Co", "List pets"],
    [yaml, "Yaml shop", "/things"],
    [swagger, "Old shop", "size"],
    [sdl, "GraphQL API", "Queries", "Mutations", "kind"],
  ]) {
    const answer = await application.request("generate", { spec, format: "react", theme: "dark", options: { includeAuth: true, pagination: true } });
    const html = await shown(answer);
    for (const text of [title, ...texts]) assert.ok(html.includes(text), `${text} is not in ${html}`);
    assert.ok(answer.componentCount > 7, `${answer.componentCount} components`);
    assert.match(answer.description, /^Generated interface with \d+ (endpoint|operation)/);
  }
  application.notify("exit");
  assert.deepEqual(await within(application.exited, "exit"), { code: 0, signal: null });
});

test("what a model writes is taken out of its words, made harmless and compiles", async (t) => {
  const { asked, config } = await model(t, [
    "Sure! Here is the interface:\n\n``", "`tsx\n// Shows the pets.\nimport React, { useState } from \"react\";\n",
    "type Pet = { id: number };\nfunction List({ pets }: { pets: Pet[] }) {\n  return <ul>{pets.map((pet) => <li key={pet.id}>It's {pet.id}</li>)}</ul>;\n}\n",
    "const retrieval = (x: string) => x;\nfunction App() {\n  const [cookie] = useState(document.coo", "kie);\n",
    "  const sum = ev", "al(\"1 + 1\");\n  return <main title={retrieval(\"t\")}>Pets{cookie}{sum}<List pets={[{ id: 7 }]} /></main>;\n}\n", "```\nEnjoy!",
  ]);
  const application = new Application(t, config);
  const answer = await application.request("generate", { spec: openapi });
  const html = await shown(answer);
  assert.match(html, /Pets.*<li>It(&#x27;|')s .*7<\/li>/);
  assert.equal(answer.componentCount, 2);
  assert.match(answer.description, /made harmless: document\.cookie, eval/);
  assert.match(asked[0].messages.at(-1).content, /GET \/pets/);
});

test("requests inside of chat messages give the same results", async (t) => {
  const code = "export default function App() {\n  return <b>changed</b>;\n}\n";
  const { config } = await model(t, ['{"kind":"code","description":"Made it bold","assumptions":[]}\n', "```tsx\n", code, "```"]);
  const application = new Application(t, config);
  const inside = { jsonrpc: "2.0", method: "customize", params: { currentCode: "export default () => <p/>;", prompt: "bold", spec: openapi } };
  const answer = await application.request("chat", { message: JSON.stringify(inside) });
  assert.deepEqual(
    [answer.code, answer.message, answer.description, answer.clarificationNeeded],
    [code, "Made it bold", "Made it bold", false],
  );
});

test("the application ends it by a signal and sees no crash", async (t) => {
  const application = new Application(t);
  await application.request("initialize", {});
  application.child.kill("SIGTERM");
  assert.deepEqual(await within(application.exited, "exit"), { code: 0, signal: null });
});
