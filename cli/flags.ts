/** Flags that several commands have. */
import { ORDER_TYPES, TIMES_IN_FORCE } from '../domain/orders/order.ts'
import { decimal, oneOf, required, text, toggle, wholeNumber, withDefault } from '../service/command-line.ts'

export const SIDES = ['LONG', 'SHORT'] as const
export const STATUSES = [
  ...(['OPEN', 'FILLED', 'CANCELLED', 'EXPIRED'] as const),
  ...(['PENDING_TRIGGER', 'CANCEL_PENDING_FINALIZE'] as const),
] as const
export const INTERVALS = [
  ...(['1m', '3m', '5m', '15m', '30m', '1h'] as const),
  ...(['2h', '4h', '8h', '12h', '1d', '1w'] as const),
] as const
export const TRANSACTION_TYPES = [
  ...(['deposit', 'withdrawal', 'adjust_leverage', 'funding_payment', 'add_margin'] as const),
  ...(['remove_margin', 'liquidation', 'market_delisting_payout'] as const),
] as const

export const MARKET = { market: required(text('<symbol>', 'symbol or number of the market')) } as const

export const CONFIRM = { yes: toggle('act without asking') } as const
export const PREVIEW = { ...CONFIRM, 'dry-run': toggle('show what would be sent, and send nothing') } as const

export const RANGE = {
  from: text('<time>', 'only at this time or later, such as 2026-11-22T13:00:00Z'),
  to: text('<time>', 'only before this time'),
  limit: wholeNumber('most rows', { least: 1, most: 1000 }),
} as const

export const SIZE = {
  ...MARKET,
  side: required(oneOf(SIDES, 'LONG buys, SHORT sells')),
  quantity: required(decimal('quantity in units of the market')),
  leverage: withDefault(wholeNumber('leverage of what the order opens', { least: 1 }), 1),
  'reduce-only': toggle('the order may only reduce a position'),
} as const

/** Flags of limit orders that are not signed. */
export const FLAGS = {
  tif: oneOf(TIMES_IN_FORCE, 'ioc: take part in one auction, then end (default gtc)'),
  builder: text('<label>', 'the program that has built the order: a-z, 0-9 and hyphens, at most 32'),
  'post-only': toggle('reject the order if it crosses an earlier limit order'),
} as const

export const ORDER = {
  ...SIZE,
  price: decimal('limit price; without it a market order'),
  type: oneOf(ORDER_TYPES, 'order type (default LIMIT with a price, MARKET without)'),
  trigger: decimal('trigger price of a conditional order'),
  expires: wholeNumber('seconds until the order expires (default: never; market orders 60)', { least: 1 }),
  label: text('<text>', 'your label, unique among live orders'),
  bracket: wholeNumber('number of its bracket: entry and exits end together', { least: 1 }),
  ...FLAGS,
} as const

export const NEW_KEY = {
  scope: oneOf(['trade', 'read'], 'what the key may do (default trade)'),
  allow: text('<networks>', 'IP addresses and networks from which the key is accepted, separated by commas'),
  'new-api-key-file': text('<file>', 'where the new key is stored (default: where the current one is)'),
} as const
