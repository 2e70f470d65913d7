/** The stored form of a batch's inputs: JSON with each order as a list of its fields, deflated. A tenth of the size of JSON with names. */
import { deflateSync, inflateSync } from 'node:zlib'
import type { ClearingInputs } from '../domain/auction/clearing.ts'
import type { RestingOrder } from '../domain/book/book.ts'
import type { StoredValue } from '../domain/journal/journal-row.ts'
import { fromStoredSpec } from '../domain/market/stored-spec.ts'
import type { FundingIndex, Price, Quote, Rate } from '../domain/units.ts'
import { toJson } from './json.ts'

/** Places in the list of an order. A new field gets the next place. */
const PLACES: Readonly<Record<keyof RestingOrder, number>> = {
  ...{ seq: 0, account: 1, side: 2, type: 3, limit: 4, remaining: 5, leverage: 6, reduceOnly: 7, forced: 8 },
  ...{ triggered: 9, widenings: 10, openable: 11, reservedPrice: 12, expiration: 13, acceptedAt: 14 },
  unused: 15,
  ioc: 16,
}
const FIELDS = (Object.keys(PLACES) as (keyof RestingOrder)[]).sort((a, b) => PLACES[a] - PLACES[b])

/** The fastest level: the engine packs while a batch waits. */
const LEVEL = 1
/** The first byte of JSON; deflated data begins with another. */
const BRACE = 0x7b

/** Fields that an order may lack. */
const OPTIONAL: ReadonlySet<keyof RestingOrder> = new Set(['unused', 'ioc'])

function packOrder(order: RestingOrder): unknown[] {
  const packed: unknown[] = FIELDS.map((field) => order[field])
  while (packed.at(-1) === undefined) packed.pop()
  return packed
}

export const packInputs = ({ orders, ladder, ...rest }: ClearingInputs): Buffer =>
  deflateSync(toJson({ ...rest, orders: orders.map(packOrder), ladder: ladder.map(packOrder) }), {
    level: LEVEL,
  })

type StoredOrder = RestingOrder | readonly unknown[]

type StoredInputs = Omit<ClearingInputs, 'spec' | 'orders' | 'ladder'> & {
  readonly spec: Record<string, StoredValue>
  readonly orders: readonly StoredOrder[]
  readonly ladder: readonly StoredOrder[]
}

const unpackOrder = (stored: StoredOrder): RestingOrder =>
  Array.isArray(stored)
    ? (Object.fromEntries(
        FIELDS.map((field, index) => [field, stored[index] ?? undefined] as const).filter(
          ([field, value]) => value !== undefined || !OPTIONAL.has(field),
        ),
      ) as unknown as RestingOrder)
    : (stored as RestingOrder)

/** Batches from before inputs were packed have JSON with names. */
export function unpackInputs(packed: Uint8Array): ClearingInputs {
  const text = packed[0] === BRACE ? Buffer.from(packed) : inflateSync(packed)
  // Amounts in wei are stored as decimal strings.
  const stored = JSON.parse(text.toString('utf8')) as StoredInputs
  return {
    ...stored,
    orders: stored.orders.map(unpackOrder),
    ladder: stored.ladder.map(unpackOrder),
    spec: fromStoredSpec(stored.spec),
    oracle: BigInt(stored.oracle) as Price,
    fundingIndex: BigInt(stored.fundingIndex) as FundingIndex,
    priceProtection: BigInt(stored.priceProtection) as Rate,
    positions: stored.positions.map(([account, { entryNotional, foldedMargin, ...rest }]) => [
      account,
      {
        ...rest,
        entryNotional: BigInt(entryNotional) as Quote,
        foldedMargin: BigInt(foldedMargin) as Quote,
      },
    ]),
  }
}
