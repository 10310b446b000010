import { expect, onTestFinished, test } from "vitest";
import { openFleet, Person } from "../testing/fleet.ts";

test("a token for metrics reads the metrics, and nothing else", async () => {
  const fleet = await openFleet();
  onTestFinished(() => fleet.close());
  const ada = await fleet.user("ada");
  const { body } = await fleet.admin.post("/v1/tokens", { kind: "metrics", name: "prometheus" });
  const scraper = new Person(fleet.url, body.secret);
  const read = async ({ token }: Person): Promise<number> => {
    const response = await fetch(`${fleet.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    return response.status;
  };
  expect([await read(scraper), await read(fleet.admin), await read(ada)]).toEqual([200, 200, 403]);
  for (const path of ["/v1/sessions", "/v1/tokens", "/v1/audit", "/v1/runners", "/v1/version"])
    expect([path, (await scraper.get(path)).status]).toEqual([path, 403]);
  expect((await scraper.post("/v1/sessions", { agent: "greeter", input: { n: 1 } })).status).toBe(403);
});
