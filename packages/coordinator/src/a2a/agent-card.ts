// `cardOf`: the card of an agent, by which clients of A2A find its address and what it takes.

import { AgentCard } from "@a2a-js/sdk";
import { VERSION } from "@holdfast/core";
import type { StartableAgent } from "@holdfast/proto";

import { isObject } from "./message-parts.ts";

export const PROTOCOL_VERSION = "1.0";
const BINDING = "JSONRPC";
const TEXT = "text/plain";
const JSON_TYPE = "application/json";
const SCHEME = "bearer";

/** @param url the address of the agent's interface. */
export function cardOf(
  { name, description, versions, tags, inputSchema }: StartableAgent,
  url: string,
): AgentCard {
  const purpose = description ?? `The agent "${name}" of a Holdfast coordinator.`;
  const schema = schemaOf(inputSchema);
  const inputModes = takesText(schema) ? [TEXT, JSON_TYPE] : [JSON_TYPE];
  const outputModes = [TEXT, JSON_TYPE];
  return {
    name,
    description: purpose,
    version: versions.at(-1) ?? VERSION,
    supportedInterfaces: [{ url, protocolBinding: BINDING, protocolVersion: PROTOCOL_VERSION, tenant: "" }],
    provider: undefined,
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
    securitySchemes: {
      [SCHEME]: {
        scheme: {
          $case: "httpAuthSecurityScheme",
          value: { scheme: "Bearer", bearerFormat: "", description: "A token of the coordinator." },
        },
      },
    },
    securityRequirements: [{ schemes: { [SCHEME]: { list: [] } } }],
    defaultInputModes: inputModes,
    defaultOutputModes: outputModes,
    skills: [
      {
        id: name,
        name,
        description: purpose,
        tags: tags.length === 0 ? ["agent"] : [...tags],
        examples: [],
        inputModes,
        outputModes,
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
}

export function schemaOf(inputSchema: Uint8Array | undefined): unknown {
  return inputSchema === undefined ? undefined : JSON.parse(new TextDecoder().decode(inputSchema));
}

/** Whether a message with text can be an input. An agent that announces nothing takes any input. */
function takesText(schema: unknown): boolean {
  if (!isObject(schema)) return true;
  const { type, properties, anyOf, oneOf, allOf } = schema;
  if (type === "string" || (isObject(properties) && "prompt" in properties)) return true;
  const parts = [anyOf, oneOf, allOf].flatMap((each) => (Array.isArray(each) ? (each as unknown[]) : []));
  return parts.length === 0 ? properties === undefined : parts.some(takesText);
}
