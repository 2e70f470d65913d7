/**
 * Shapes of commands from APIs, publishers and operators. A malformed command is rejected before its decision: a faulty
 * API must not make one fail, which restricts a market to cancels.
 */
import Type, { type TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { IF_FILLED, MAX_ITEMS } from '../../domain/exchange/decide/orders/command.ts'
import { MAX_KEY_LENGTH } from '../../domain/exchange/decide/orders/command-keys.ts'
import type { MarketKind } from '../../domain/market/market.ts'
import { MAX_BRACKET } from '../../domain/orders/brackets.ts'
import { ORDER_TYPES, TIMES_IN_FORCE } from '../../domain/orders/order.ts'
import { BUILDER_PATTERN } from '../../domain/orders/order-flags.ts'
import { REMOVE_MODES } from '../../domain/positions/adjustment.ts'
import type { CommandKind } from './commands.ts'
import type { Inform } from './facts.ts'

const exact = <Fields extends Record<string, TSchema>>(fields: Fields) =>
  Type.Object(fields, { additionalProperties: false })
const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])
const oneOf = (words: readonly string[]) => Type.Union(words.map((word) => Type.Literal(word)))
/** Keys of one barrier. */
const MAX_FENCES = 10_000
const text = (maxLength: number) => Type.String({ maxLength })
const hex = (bytes: number) => Type.String({ pattern: `^0x[0-9a-f]{${2 * bytes}}$` })

const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
/** Fields that contracts read as 32 bits. */
const small = Type.Integer({ minimum: 0, maximum: 0xffff_ffff })
const amount = Type.BigInt({ minimum: 0n, maximum: (1n << 128n) - 1n })
const change = Type.BigInt({ minimum: -(1n << 127n), maximum: (1n << 127n) - 1n })
const address = hex(20)
const hash = hex(32)
const marketId = small
const userId = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const note = nullable(text(500))
/** As the state stores it. */
const label = Type.String({ minLength: 1, maxLength: 64, pattern: '^[\\x21-\\x7e]*$' })
const signature = Type.String({ pattern: '^0x([0-9a-f]{2}){0,200}$' })
const bytes = Type.String({ pattern: '^0x([0-9a-f]{2}){0,4096}$' })

const order = exact({
  marketId,
  maker: address,
  side: oneOf(['LONG', 'SHORT']),
  type: oneOf(ORDER_TYPES),
  price: count,
  quantity: count,
  trigger: count,
  leverage: count,
  reduceOnly: Type.Boolean(),
  expiration: count,
  salt: Type.BigInt({ minimum: 0n, maximum: (1n << 53n) - 1n }),
  hash,
  signer: address,
  signature,
})
const bookmark = exact({ marketId, seq: count })
const endedOrder = exact({
  marketId,
  accepted: count,
  account: userId,
  status: text(30),
  forced: Type.Boolean(),
})
const ended = Type.Union([
  exact({ found: endedOrder }),
  exact({ absentUpTo: Type.Array(bookmark, { maxItems: 10_000 }) }),
])
const newOrder = {
  order,
  clientOrderId: nullable(label),
  flags: Type.Optional(
    exact({
      timeInForce: oneOf(TIMES_IN_FORCE),
      postOnly: Type.Boolean(),
      bracket: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_BRACKET })),
      builder: Type.Optional(Type.String({ pattern: BUILDER_PATTERN })),
    }),
  ),
  absentUpTo: nullable(count),
}
const target = Type.Union([exact({ hash, ended: nullable(ended) }), exact({ label })])
const item = Type.Union([
  exact({ kind: Type.Literal('place'), ...newOrder }),
  exact({ kind: Type.Literal('replace'), ...newOrder, target, ifFilled: oneOf(IF_FILLED) }),
  exact({ kind: Type.Literal('cancel'), target, note }),
  exact({ kind: Type.Literal('refused'), refusal: Type.Unknown() }),
  exact({ kind: Type.Literal('answered'), answer: Type.Unknown() }),
])
const request = exact({ id: text(200), digest: text(200), absentUpTo: nullable(count) })
const adjustment = Type.Union([
  exact({ leverage: count, maxMarginIn: amount, minMarginOut: amount }),
  exact({ amount: change, removeMode: oneOf(REMOVE_MODES), minAmount: amount }),
])
const effect = Type.Union([
  exact({ kind: oneOf(['register_session_key', 'revoke_session_key']), sessionKey: address }),
  exact({ kind: Type.Literal('invalidate_margin_nonces'), marketId, minimum: amount }),
])
const forwardRequest = exact({
  from: address,
  to: address,
  gas: count,
  nonce: count,
  deadline: count,
  data: bytes,
})
const feeRates = exact({ makerFee: change, takerFee: change })
const setting = Type.Union([
  exact({ kind: Type.Literal('reopen') }),
  exact({ kind: Type.Literal('calendar'), calendar: nullable(text(40)) }),
  exact({ kind: Type.Literal('impact_notional'), notional: nullable(amount) }),
  exact({ kind: Type.Literal('protection'), width: amount }),
  exact({
    kind: Type.Literal('fees'),
    change: exact({ rates: nullable(feeRates), from: count, until: nullable(count) }),
    isDryRun: Type.Boolean(),
  }),
])
const report = exact({ price: amount, observedAt: count, signatures: bytes })
const session = exact({ endsAt: count, observedAt: count, signatures: bytes })

const orders = {
  userId,
  items: Type.Array(item, { maxItems: MAX_ITEMS + 1 }),
  isAtomic: Type.Boolean(),
  request: nullable(request),
}

const kind = <Name extends string>(name: Name, fields: Record<string, TSchema>) =>
  exact({ kind: Type.Literal(name), ...fields })

/** Other commands come from the exchange's own ingest and workers, or from the engine itself. */
const SCHEMAS = {
  orders: kind('orders', orders),
  dry_run: kind('dry_run', orders),
  admission_input: kind('admission_input', { userId, marketId }),
  cancel_all: kind('cancel_all', {
    userId,
    marketId: nullable(marketId),
    note,
    covers: Type.Array(marketId, { maxItems: 10_000 }),
  }),
  log_in: kind('log_in', { address }),
  set_switch: kind('set_switch', { userId, timeoutSeconds: small }),
  hold_connections: kind('hold_connections', {
    connections: Type.Array(
      exact({
        connectionId: text(100),
        userId,
        timeoutSeconds: Type.Integer({ minimum: 1, maximum: 86_400 }),
        keyName: nullable(text(32)),
        fireInMs: Type.Integer({ minimum: 0, maximum: 2 * 86_400_000 }),
      }),
      { maxItems: 10_000 },
    ),
  }),
  end_connections: kind('end_connections', {
    connections: Type.Array(text(100), { maxItems: 10_000 }),
  }),
  barrier: kind('barrier', { fences: Type.Array(text(MAX_KEY_LENGTH), { maxItems: MAX_FENCES }) }),
  accept_relay: kind('accept_relay', {
    userId,
    operationId: text(100),
    effect,
    request: forwardRequest,
    signature,
    hasLane: Type.Boolean(),
  }),
  adjust: kind('adjust', {
    userId,
    marketId,
    digest: text(100),
    nonce: count,
    signed: exact({ adjustment, signer: address, signature, deadline: count }),
    hasLane: Type.Boolean(),
  }),
  operator: kind('operator', { marketId, setting }),
  inform_reports: kind('inform_reports', {
    marketId,
    report: nullable(report),
    session: nullable(session),
  }),
  inform_rules: kind('inform_rules', {
    marketId,
    rules: exact({
      kind: oneOf(['perpetual', 'future', 'binary_future'] satisfies MarketKind[]),
      tick: amount,
      maxAge: count,
      moveBase: amount,
      moveSlope: amount,
      moveWindow: count,
    }),
  }),
  inform_head: kind('inform_head', { time: nullable(count) }),
  inform_pass: kind('inform_pass', { at: count }),
} as const satisfies Partial<Record<CommandKind | Inform['kind'], TSchema>>

interface ShapeValidator {
  Check(value: unknown): boolean
  Errors(value: unknown): readonly { readonly instancePath: string; readonly message: string }[]
}

const VALIDATORS = new Map<string, ShapeValidator>(
  Object.entries(SCHEMAS).map(([name, schema]) => [name, Compile(schema as TSchema) as ShapeValidator]),
)

/** Throws an Error that names the first field that has not the shape of the command. */
export function checkShape(command: { readonly kind: string }): void {
  const validator = VALIDATORS.get(command.kind)
  if (validator === undefined || validator.Check(command)) return
  const [first] = validator.Errors(command)
  throw new Error(`${command.kind}${first?.instancePath ?? ''} ${first?.message ?? 'has another shape'}`)
}
