import { expect, test } from "vitest";
import type { Json } from "./json.ts";
import { withoutSecrets } from "./secret-looks.ts";

const KEY = "sk-abcdefghijklmnop1234";

test.each<readonly [string, string]>([
  ["git push origin main", "git push origin main"],
  [`curl -H 'x-api-key: ${KEY}' https://a.example`, "curl -H 'x-api-key: [secret]' https://a.example"],
  ["curl -H 'Authorization: Bearer abcdefghijklmnop'", "curl -H 'Authorization: [secret]'"],
  ["curl -H 'Authorization: Basic dXNlcjpwYXNz'", "curl -H 'Authorization: [secret]'"],
  ["DB_PASSWORD=hunter2 npm start", "DB_PASSWORD=[secret] npm start"],
  ["mysql --password hunter2 -u root", "mysql --password [secret] -u root"],
  ["mysql --password=hunter2", "mysql --password=[secret]"],
  ["git clone https://ada:hunter2@host.example/a.git", "git clone https[secret]host.example/a.git"],
  ["API_KEY=$API_KEY run.sh", "API_KEY=$API_KEY run.sh"],
  ["count the tokens of a text", "count the tokens of a text"],
])("a command keeps what is no secret: %s", (command, shown) => {
  expect(withoutSecrets({ command }, 1_000)).toEqual({ command: shown });
});

test("a field with the name of a secret has none of it, however deep it is, and a long text is cut", () => {
  const value: Json = { form: [{ apiKey: "plain", password: "", user: "ada" }], long: "x".repeat(50), at: 7 };
  expect(withoutSecrets(value, 10)).toEqual({
    form: [{ apiKey: "[secret]", password: "", user: "ada" }],
    long: "xxxxxxxxxx… (50 characters)",
    at: 7,
  });
});
