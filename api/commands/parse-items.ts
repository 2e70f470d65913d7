/** Validates the items of a batch of placements or replacements, up to their signatures. */
import type { OrderFlags } from '../../domain/orders/order-flags.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import { type Problem, validationError } from '../http/problems.ts'
import { compileValidator } from '../http/validation.ts'
import type { PlaceOrderBody } from '../order-entry/schema.ts'
import type { Signed } from '../ports.ts'
import type { Item, NewOrder } from './command.ts'
import { placementIdentity, type SaltedOrder, saltedOrder } from './command-identity.ts'
import { parseFlags, parseOrder } from './parse-order.ts'
import type { CommandPorts } from './submit-single.ts'

/** An order up to its signature. */
interface Parsed extends Signed {
  readonly flags: OrderFlags
}

export interface ItemParser<Body> {
  /** Schema of one item, with its form and what is expected, for errors. */
  readonly schema: object
  readonly url: string
  readonly expected: string
  readonly orderOf: (body: Body) => PlaceOrderBody
  /** The item of an order with a verified signature. Throws ApiError. */
  readonly itemOf: (body: Body, order: NewOrder) => Item
}

export type ParseItems<Body> = (
  ports: CommandPorts,
  caller: Caller,
  bodies: readonly Body[],
) => Promise<Item[]>

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** One item per body, in the order of the request, after all checks that need no state of the exchange. */
export function itemParser<Body>({
  schema,
  url,
  expected,
  orderOf,
  itemOf,
}: ItemParser<Body>): ParseItems<Body> {
  const validate = compileValidator({ schema, method: 'POST', url, httpPart: 'body' } as never) as (
    value: unknown,
  ) => { readonly error?: readonly Problem[] } | boolean

  async function parse(
    { attempts, findBySalt, markets }: CommandPorts,
    { address }: Caller,
    body: Body,
  ): Promise<Parsed | ApiError> {
    try {
      if (!isObject(body)) throw new ApiError('INVALID_FIELD', { expected, received: body }).beforeReading()
      const checked = validate(body)
      const problems = typeof checked === 'object' ? checked.error : undefined
      if (problems) throw validationError([...problems], body, schema).beforeReading()
      const placement = orderOf(body)
      const salted = saltedOrder(address, placement)
      return await attempts.checking(placementIdentity(findBySalt, salted, null), async () => {
        const spec = await markets.byId(salted.marketId)
        const order = parseOrder(spec, address, placement)
        return { spec, order, flags: parseFlags(placement, order), signature: placement.signature }
      })
    } catch (error) {
      if (error instanceof ApiError) return error
      throw error
    }
  }

  return async (ports, caller, bodies) => {
    const parsed = await Promise.all(bodies.map((body) => parse(ports, caller, body)))
    const verified = await ports.verifier.verifyAll(
      parsed.filter((item): item is Parsed => !(item instanceof ApiError)),
    )
    let next = 0
    const items = parsed.map(async (item, at): Promise<Item> => {
      if (item instanceof ApiError) return { kind: 'refused', error: item }
      const order = verified[next++]
      if (order instanceof ApiError)
        return { kind: 'refused', error: await unlessPlaced(ports, item.order, order) }
      const body = bodies[at] as Body
      const clientOrderId = orderOf(body).client_order_id ?? null
      const { spec, flags } = item
      try {
        return itemOf(body, { spec, order: order as NewOrder['order'], clientOrderId, flags })
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        return { kind: 'refused', error: await unlessPlaced(ports, item.order, error) }
      }
    })
    return Promise.all(items)
  }
}

/** The error of an order that is refused, now or by an earlier attempt: another attempt may have placed it. */
export async function unlessPlaced(
  { attempts, findBySalt }: Pick<CommandPorts, 'attempts' | 'findBySalt'>,
  { marketId, maker, salt }: Omit<SaltedOrder, 'salt'> & { readonly salt: string | bigint | number },
  error: ApiError,
): Promise<ApiError> {
  const identity = placementIdentity(findBySalt, { marketId, maker, salt: String(salt) }, null)
  return attempts.checking(identity, () => Promise.reject(error)).catch((judged: ApiError) => judged)
}
