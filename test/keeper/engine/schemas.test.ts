/** Commands of a wrong or captured api: no value that has the shape of a command makes a decision throw. */
import { expect } from 'chai'
import fc from 'fast-check'
import { beforeEach, describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import type { ExchangeCommand } from '../../../keeper/engine/commands.ts'
import { ConnectionDeadlines } from '../../../keeper/engine/connection-deadlines.ts'
import { createEnginePort } from '../../../keeper/engine/engine-port.ts'
import { Exchange } from '../../../keeper/engine/exchange.ts'
import { Facts } from '../../../keeper/engine/facts.ts'
import { decode, encode } from '../../../keeper/engine/link/codec.ts'
import { genesis } from '../../../simulate/exchange/trading/genesis.ts'

const NOW = 1_700_000_000_000 as Millis
const SIGNATURE = `0x${'11'.repeat(66)}`
const hashOf = (byte: string): string => `0x${byte.repeat(32)}`
const addressOf = (byte: string): string => `0x${byte.repeat(20)}`
const MAKER = `0x${'0'.repeat(39)}1`

const order = {
  marketId: 1,
  maker: MAKER,
  side: 'LONG',
  type: 'LIMIT',
  price: 1000,
  quantity: 5,
  trigger: 0,
  leverage: 2,
  reduceOnly: false,
  expiration: 0,
  salt: 7n,
  hash: hashOf('ab'),
  signer: MAKER,
  signature: SIGNATURE,
}
const place = { kind: 'place', order, clientOrderId: 'a', absentUpTo: null }
const cancel = { kind: 'cancel', target: { hash: hashOf('ab'), ended: null }, note: null }
const flags = { timeInForce: 'ioc', postOnly: false, bracket: 7 }
const replacing = { order, clientOrderId: null, flags, absentUpTo: 3, ifFilled: 'reduce' }
const replace = { kind: 'replace', target: { label: 'a' }, ...replacing }
const found = { marketId: 1, accepted: 3, account: 1, status: 'FILLED', forced: false }
const VALID: readonly object[] = [
  { kind: 'orders', userId: 1, items: [place, cancel], isAtomic: false, request: null },
  { kind: 'orders', userId: 1, items: [replace, { ...place, flags }], isAtomic: true, request: null },
  {
    kind: 'orders',
    userId: 2,
    items: [
      { kind: 'cancel', target: { label: 'a' }, note: 'n' },
      { kind: 'cancel', target: { hash: hashOf('cd'), ended: { found } }, note: null },
      {
        kind: 'cancel',
        target: { hash: hashOf('cd'), ended: { absentUpTo: [{ marketId: 1, seq: 2 }] } },
        note: null,
      },
      { kind: 'refused', refusal: { code: 'INVALID_FIELD' } },
      { kind: 'answered', answer: { order_hash: hashOf('cd') } },
    ],
    isAtomic: true,
    request: { id: 'r', digest: 'ff', absentUpTo: 0 },
  },
  { kind: 'dry_run', userId: 1, items: [place], isAtomic: false, request: null },
  { kind: 'admission_input', userId: 1, marketId: 1 },
  { kind: 'cancel_all', userId: 1, marketId: null, note: null, covers: [1] },
  { kind: 'log_in', address: addressOf('aa') },
  { kind: 'set_switch', userId: 1, timeoutSeconds: 5 },
  {
    kind: 'hold_connections',
    connections: [{ connectionId: 'c', userId: 1, timeoutSeconds: 5, keyName: 'default', fireInMs: 5_000 }],
  },
  { kind: 'end_connections', connections: ['c'] },
  { kind: 'barrier', fences: ['place 1:0xab:7', 'request 1:one'] },
  {
    kind: 'accept_relay',
    userId: 1,
    operationId: hashOf('01'),
    effect: { kind: 'register_session_key', sessionKey: addressOf('bb') },
    request: {
      from: MAKER,
      to: addressOf('cc'),
      gas: 100_000,
      nonce: 0,
      deadline: 1_800_000_000,
      data: '0x1234',
    },
    signature: SIGNATURE,
    hasLane: true,
  },
  {
    kind: 'accept_relay',
    userId: 1,
    operationId: hashOf('02'),
    effect: { kind: 'invalidate_margin_nonces', marketId: 1, minimum: 4n },
    request: {
      from: MAKER,
      to: addressOf('cc'),
      gas: 100_000,
      nonce: 0,
      deadline: 1_800_000_000,
      data: '0x',
    },
    signature: SIGNATURE,
    hasLane: true,
  },
  {
    kind: 'adjust',
    userId: 1,
    marketId: 1,
    digest: hashOf('03'),
    nonce: 1,
    signed: {
      adjustment: { amount: 5n, removeMode: 'exact', minAmount: 0n },
      signer: MAKER,
      signature: SIGNATURE,
      deadline: 1_800_000_000,
    },
    hasLane: true,
  },
]

/** Values that a field of a command may be changed to. */
const anyValue = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    '',
    0,
    -1,
    1.5,
    Number.MAX_SAFE_INTEGER,
    2 ** 40,
    0xffff_ffff,
    true,
    [],
    {},
    '0x',
    99,
  ),
  fc.constantFrom<unknown>(
    0n,
    -1n,
    1n << 200n,
    (1n << 53n) - 1n,
    'MARKET',
    'SHORT',
    'x'.repeat(300),
    'é',
    '\u0000',
  ),
  fc.constantFrom<unknown>({ $int: 'x' }, { $map: 1 }, hashOf('00'), addressOf('00'), 'revoke_session_key'),
)

/** Replaces, removes or adds one field somewhere in the value. */
function changed(value: unknown, path: readonly number[], replacement: unknown): unknown {
  const [first, ...rest] = path
  if (typeof value !== 'object' || value === null || first === undefined) return replacement
  const keys = Object.keys(value)
  if (keys.length === 0) return Array.isArray(value) ? [replacement] : { unknown: replacement }
  const key = keys[first % keys.length] as string
  const item = changed((value as Record<string, unknown>)[key], rest, replacement)
  if (Array.isArray(value)) return value.map((own, at) => (String(at) === key ? item : own))
  return { ...value, [key]: item }
}

describe('commands of an api', () => {
  let exchange: Exchange
  const facts = new Facts({ oracleMaxAgeMs: 1_000, chainMaxAgeMs: 1_000 })
  const port = createEnginePort({
    submit: () => null,
    facts,
    deadlines: new ConnectionDeadlines(),
    now: () => NOW,
    monotonic: () => performance.now(),
  })
  const parse = (value: unknown): ExchangeCommand => port.parse(encode(value)) as ExchangeCommand

  beforeEach(() => {
    facts.note({ kind: 'inform_pass', at: NOW })
    facts.note({
      kind: 'inform_reports',
      marketId: 1 as never,
      report: { price: (10n ** 18n) as never, observedAt: NOW, signatures: '0x' },
      session: null,
    })
    exchange = new Exchange(genesis(), {
      inputsAt: facts.inputsAt,
      hashOrder: () => hashOf('ee') as never,
      chainRules: { confirmations: 1, depth: 10, sliceAccounts: 10, emptyBlocksMs: 1_000 },
    })
  })

  /** Decides and applies, as the owner does; the state is taken back. */
  function execute(command: ExchangeCommand): unknown {
    const before = exchange.position()
    const { rows, answer } = exchange.decide(command, { now: NOW })
    for (const row of rows) exchange.apply(row)
    exchange.undoTo(before)
    return answer
  }

  it('each of the valid ones is accepted and decided', () => {
    for (const command of VALID)
      expect(execute(parse(command)), JSON.stringify(encode(command))).to.not.equal(undefined)
  })

  it('when any field is replaced by any value, the command is refused by its shape, or decided without an error', () => {
    let [refused, decided] = [0, 0]
    fc.assert(
      fc.property(
        fc.constantFrom(...VALID),
        fc.array(fc.nat(20), { minLength: 1, maxLength: 6 }),
        anyValue,
        (valid, path, value) => {
          const message = changed(encode(valid), path, encode(value))
          let command: ExchangeCommand
          try {
            command = port.parse(message) as ExchangeCommand
          } catch (error) {
            expect((error as Error).message).to.have.length.above(10)
            refused++
            return
          }
          execute(command)
          decided++
        },
      ),
      { numRuns: 5_000 },
    )
    expect(refused).to.be.above(1_000)
    expect(decided).to.be.above(200)
  })

  it('when a field is missing or unknown, or an amount has letters, the error names it', () => {
    const [orders] = VALID as readonly Record<string, unknown>[]
    expect(() => parse({ ...orders, isAtomic: undefined })).to.throw('isAtomic')
    expect(() => parse({ ...orders, isUrgent: true })).to.throw('orders')
    expect(() => port.parse({ kind: 'log_in', address: { $int: '12x' } })).to.throw('$int')
    expect(() => port.parse(JSON.parse('{"kind": "log_in", "__proto__": {}}'))).to.throw('__proto__')
  })

  it('values are the same after they were encoded and decoded', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withMap: true, maxDepth: 4 }), (value) => {
        fc.pre(
          JSON.stringify(encode(value)) !== undefined &&
            !/\$|__proto__|NaN|Infinity/.test(JSON.stringify(encode(value))),
        )
        const sent = JSON.parse(JSON.stringify(encode(value)))
        expect(encode(decode(sent))).to.deep.equal(sent)
      }),
    )
  })
})
