// The model and the mode of a session of the Agent Client Protocol (`optionRequest`). It knows no process.
//
//   - A session offers its choices when it is opened, as options or, in older programs, as modes. A choice
//     that it does not offer is an error, because the session would work with other rights or another model.
//   - A choice that the session has already made needs no request.

import { HoldfastError } from "@holdfast/core";

import type { ExternalIntent } from "../../session/external-agent-protocol.ts";
import { isFields, listOf, type Fields } from "../../session/fields.ts";

export interface AcpChoice {
  /** The category of the option. */
  readonly category: "model" | "mode";
  readonly value: string;
}

/**
 * The model first: the modes of a session may depend on it.
 *
 * @param modes the modes of the program by the permission modes of Holdfast; without them a default mode is
 *   the program's own.
 */
export function choicesOf(
  { model, permissionMode }: Pick<ExternalIntent, "model" | "permissionMode">,
  modes: Readonly<Record<string, string>> | undefined,
): readonly AcpChoice[] {
  const mode = modes?.[permissionMode] ?? (permissionMode === "default" ? null : permissionMode);
  return [
    ...(model === null ? [] : [{ category: "model", value: model } as const]),
    ...(mode === null ? [] : [{ category: "mode", value: mode } as const]),
  ];
}

export interface OptionRequest {
  readonly method: "session/set_config_option" | "session/set_mode";
  readonly params: Fields;
}

interface Offer {
  readonly current: unknown;
  readonly values: readonly unknown[];
  request(value: string): OptionRequest;
}

/**
 * @param opened the answer to the request that opened the session, or to an earlier request of this kind.
 * @throws HoldfastError `invalid_input`
 */
export function optionRequest(
  opened: Fields,
  { category, value }: AcpChoice,
  agent: string,
): OptionRequest | undefined {
  const offer = offerOf(opened, category);
  if (offer === undefined)
    throw new HoldfastError(
      "invalid_input",
      `${agent} offers no choice of a ${category}, and "${value}" was asked for`,
    );
  if (offer.current === value) return undefined;
  if (offer.values.includes(value)) return offer.request(value);
  throw new HoldfastError(
    "invalid_input",
    `${agent} offers no ${category} "${value}"; it offers ${offer.values.join(", ")}`,
  );
}

/** The current model of a session, where it names one. */
export function currentModel(opened: Fields): string | undefined {
  const current = offerOf(opened, "model")?.current;
  return typeof current === "string" ? current : undefined;
}

function offerOf({ configOptions, modes }: Fields, category: AcpChoice["category"]): Offer | undefined {
  const option = listOf(configOptions).find((one) => (one["category"] ?? one["id"]) === category);
  if (option !== undefined) {
    const { id: configId, currentValue, options } = option;
    // Options may be in groups.
    const values = listOf(options).flatMap((one) => ("value" in one ? [one] : listOf(one["options"])));
    return {
      current: currentValue,
      values: values.map((one) => one["value"]),
      request: (value) => ({ method: "session/set_config_option", params: { configId, value } }),
    };
  }
  if (category !== "mode" || !isFields(modes)) return undefined;
  return {
    current: modes["currentModeId"],
    values: listOf(modes["availableModes"]).map((mode) => mode["id"]),
    request: (modeId) => ({ method: "session/set_mode", params: { modeId } }),
  };
}
