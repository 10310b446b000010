// `methodsOf` finds the code of a service by the contract: for each method that the descriptor of the service
// names, the method of the object.
//
// The object itself is not listed. A service is a class, and the methods of a class belong to its prototype.

import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";

/** A method of a service as Connect has it, without its types. */
export type Implementation = (
  request: Message,
  context: HandlerContext,
) => Promise<object> | object | AsyncIterable<object>;

/** The code of methods of the contract. */
export type Methods = ReadonlyMap<DescMethod, Implementation>;

/**
 * @param except methods that are not served.
 * @throws Error for a method that the service lacks.
 */
export function methodsOf<Desc extends DescService>(
  desc: Desc,
  service: ServiceImpl<Desc>,
  except: readonly (keyof ServiceImpl<Desc> & string)[] = [],
): Methods {
  const served = desc.methods.filter(({ localName }) => !(except as readonly string[]).includes(localName));
  return new Map(served.map((method) => [method, boundMethod(method, service)]));
}

function boundMethod({ localName, parent }: DescMethod, service: object): Implementation {
  const found = (service as Readonly<Record<string, unknown>>)[localName];
  if (typeof found !== "function") throw new Error(`the service has no ${parent.name}.${localName}`);
  return found.bind(service) as Implementation;
}
