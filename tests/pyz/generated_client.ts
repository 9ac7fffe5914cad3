// Uses the client that @hey-api/openapi-ts makes of the description, against the server named by the first argument.
// Prints what it got as JSON. Compiling it shows that the types of answers and errors are there.

import { client } from "./client/client.gen";
import { createCheck, listChecks, readCard, register, updateCheck } from "./client/sdk.gen";

async function main(baseUrl: string) {
  client.setConfig({ baseUrl });
  const checksKey = await register({ body: { email: "you@example.com" }, throwOnError: true });
  const cardsKey = await register({ throwOnError: true });
  client.setConfig({ auth: checksKey.data.key });

  const body = { name: "Nightly backup", period_seconds: 86400, grace_seconds: 900 };
  const created = await createCheck({ body, throwOnError: true });
  const { id, version } = created.data.check;
  const headers = { "If-Match": `"${version}"` };
  const changed = await updateCheck({ path: { id }, headers, body: { grace_seconds: 1800 }, throwOnError: true });
  const again = await updateCheck({ path: { id }, headers, body: { grace_seconds: 60 } });
  const listed = await listChecks({ query: { limit: 10 }, throwOnError: true });

  const query = { title: "Designing reliable jobs", template: "blog", key: cardsKey.data.key } as const;
  const card = await readCard({ query, throwOnError: true });
  const png: Blob | File = card.data;
  const refused = await readCard({ query: { ...query, key: "sk_unknown" } });

  const code: string | undefined = again.error?.code;
  return {
    scopes: [checksKey.data.scope, cardsKey.data.scope],
    changed: changed.data.check.grace_seconds,
    conflict: [again.response?.status, code],
    listed: listed.data.checks.map((check) => [check.name, check.version]),
    refused: [refused.response?.status, refused.error?.code],
    card: Array.from(new Uint8Array(await png.arrayBuffer())),
  };
}

declare const process: { argv: string[] };
main(process.argv[2]).then((got) => console.log(JSON.stringify(got)));
