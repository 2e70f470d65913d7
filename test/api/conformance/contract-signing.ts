/** The contract with traders as tables: what must be signed. */
import { FIELDS } from './contract.ts'
import type { Terms } from './contract-requests.ts'

export interface SignatureRow {
  readonly id: string
  readonly terms?: Terms
  /** Bits in which the signed flags differ from the correct ones. */
  readonly flags?: bigint
  readonly message?: Readonly<Record<string, unknown>>
  readonly domain?: Readonly<Record<string, unknown>>
  readonly struct?: readonly string[]
  readonly signing?: 'no suffix' | 'other suffix' | 'bare digest' | 'another wallet'
  readonly isAccepted?: boolean
}

const TYPES = FIELDS.order?.order_type as readonly string[]
const isReducing = (type: string): boolean => type.startsWith('TAKE_PROFIT') || type.startsWith('STOP_LOSS')

/** Terms of an order of the type that rests or waits at any price during the test. */
export function waiting(type: string, side: string): Terms {
  const isLong = side === 'LONG'
  const rises = type.startsWith('TAKE_PROFIT') ? !isLong : isLong
  const isConditional = type !== 'MARKET' && type !== 'LIMIT'
  const trigger = rises ? 1100 : 900
  return {
    ...{ side, order_type: type },
    ...(isConditional && { trigger }),
    ...(type.endsWith('LIMIT') && { price: isConditional ? trigger : isLong ? 970 : 1030 }),
    ...(isReducing(type) && { reduce_only: true }),
  }
}

const SIDES = ['LONG', 'SHORT'] as const
const conditionRows = TYPES.flatMap((type) =>
  SIDES.flatMap((side): SignatureRow[] => {
    const terms = waiting(type, side)
    const rises = type.startsWith('TAKE_PROFIT') ? side === 'SHORT' : side === 'LONG'
    const right = terms.trigger === undefined ? 0 : rises ? 1 : 2
    return [0, 1, 2].map((condition) => ({
      ...{ id: `triggerCondition ${condition} for ${type} ${side}`, terms },
      ...{ message: { triggerCondition: condition }, isAccepted: condition === right },
    }))
  }),
)

const STRUCT = [
  'flags',
  'quantity',
  'price',
  'triggerPrice',
  'triggerCondition',
  'leverage',
  'maker',
  'expiration',
]

export const SIGNATURES: readonly SignatureRow[] = [
  { id: 'the stated struct and domain', isAccepted: true },
  ...conditionRows,
  { id: 'triggerCondition 3', message: { triggerCondition: 3 } },
  { id: 'flags of another salt', flags: 0x10n },
  { id: 'flags of the other side', flags: 1n },
  { id: 'flags with the reduce-only bit of a plain order', flags: 2n },
  { id: 'flags with the third bit set', flags: 4n },
  { id: 'flags with the fourth bit set', flags: 8n },
  { id: 'a quantity that differs', message: { quantity: 2n } },
  { id: 'a price that differs', message: { price: 2n } },
  { id: 'a price on a market order', terms: { order_type: 'MARKET' }, message: { price: 1n } },
  {
    id: 'a price on a conditional market order',
    terms: waiting('STOP_MARKET', 'LONG'),
    message: { price: 1n },
  },
  {
    id: 'a trigger price that differs',
    terms: waiting('STOP_MARKET', 'LONG'),
    message: { triggerPrice: 1n },
  },
  { id: 'a leverage that differs', message: { leverage: 2n * 10n ** 18n } },
  { id: 'a leverage that is not scaled', message: { leverage: 1 } },
  { id: 'a maker that differs', message: { maker: `0x${'11'.repeat(20)}` } },
  { id: 'an expiration that differs', message: { expiration: 1_900_000_000 } },
  { id: 'a domain name that differs', domain: { name: 'Clearbatch' } },
  { id: 'domain version 1.0', domain: { version: '1.0' } },
  { id: 'the production chain', domain: { chainId: 4326 } },
  { id: "another market's contract", domain: { verifyingContract: `0x${'22'.repeat(20)}` } },
  { id: 'the struct without triggerCondition', struct: STRUCT.filter((name) => name !== 'triggerCondition') },
  { id: 'no suffix', signing: 'no suffix' },
  { id: 'another suffix', signing: 'other suffix' },
  { id: 'the bare digest instead of a personal message', signing: 'bare digest' },
  { id: "another wallet's key", signing: 'another wallet' },
]
