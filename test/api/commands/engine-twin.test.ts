/** The engine decides commands as the api's transactions do: the same rows and the same answers, for any sequence of commands. */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import type { Item as ApiItem, CommandReport } from '../../../api/commands/command.ts'
import type { StoredOrder } from '../../../api/commands/group-state.ts'
import {
  batchOfRequest,
  hashesOfRequest,
  type StoredRequest,
  toStoredBatch,
} from '../../../api/commands/stored-answer.ts'
import { ApiError } from '../../../api/errors.ts'
import { appendRows, lockShard } from '../../../db/journal.ts'
import { saveSessionKey } from '../../../db/session-keys.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { ORDER_TYPES, type SignedOrder } from '../../../domain/orders/order.ts'
import { hashOrder } from '../../../domain/orders/order-hash.ts'
import type { Address, Millis, OrderHash, Seconds, Steps, Ticks } from '../../../domain/units.ts'
import { keccak } from '../../../service/crypto.ts'
import { binary, perpetual } from '../../support/markets.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import { CommandTwins, plain, requestOf, type TwinCommand } from '../support/command-twins.ts'
import {
  createUser,
  type ExchangeFixture,
  setOracle,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { minePart, runAuction } from '../support/keeper-turns.ts'

const MARKETS: readonly MarketSpec[] = [perpetual, binary]
const KEY = `0x${'5e'.repeat(20)}` as Address
const STRANGER = `0x${'57'.repeat(20)}` as Address

/** The first value nine times out of ten. */
const mostly = <Value>(usual: Value, ...others: readonly Value[]): fc.Arbitrary<Value> =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) })

const anyPlacement = fc.record({
  kind: fc.constant('place' as const),
  market: fc.constantFrom(0, 0, 0, 1),
  isLong: fc.boolean(),
  type: fc.oneof(
    { weight: 3, arbitrary: fc.constant('LIMIT' as const) },
    { weight: 1, arbitrary: fc.constantFrom(...ORDER_TYPES) },
  ),
  /** Offset from the oracle price, in ticks. */
  offset: fc.constantFrom(-30, -3, -2, 0, 0, 2, 3, 60),
  quantity: fc.constantFrom(1, 10, 20, 50, 50, 400, 1_000_000),
  leverage: fc.constantFrom(1, 2, 4, 4, 20, 21),
  reduceOnly: mostly(false, true),
  expiration: mostly(0, 1, 4_000_000_000),
  salt: mostly<number | null>(null, 7),
  label: mostly<string | null>(null, 'a', 'b'),
  signer: mostly<'maker' | 'key' | 'stranger'>('maker', 'key', 'key', 'stranger'),
})
const anyCancel = fc.record({
  kind: fc.constant('cancel' as const),
  pick: fc.nat(40),
  isUnknown: fc.constantFrom(false, false, false, true),
  note: fc.constantFrom<string | null>(null, 'changed my mind'),
})
const anyRefused = fc.record({ kind: fc.constant('refused' as const) })
const anyItem = fc.oneof(
  { weight: 12, arbitrary: anyPlacement },
  { weight: 6, arbitrary: anyCancel },
  { weight: 1, arbitrary: anyRefused },
)
const anyCommand = fc.record({
  by: fc.nat(2),
  items: fc.oneof(
    { weight: 3, arbitrary: fc.array(anyItem, { minLength: 1, maxLength: 1 }) },
    { weight: 1, arbitrary: fc.array(anyItem, { minLength: 0, maxLength: 6 }) },
  ),
  isAtomic: mostly(false, true),
  request: fc.constantFrom<string | null>(null, null, null, null, 'one', 'two'),
  repeat: mostly(true, false),
})
const anyCommandEvent = fc.record({ kind: fc.constant('command' as const), command: anyCommand })
const anyCancelAll = fc.record({
  kind: fc.constant('cancel_all' as const),
  by: fc.nat(2),
  market: fc.constantFrom<number | null>(0, 1, null),
})
const anyOracle = fc.record({
  kind: fc.constant('oracle' as const),
  ticks: fc.constantFrom(-8, 8),
  stale: fc.constantFrom(false, false, true),
})
const anyChain = fc.record({
  kind: fc.constant('chain' as const),
  isSeen: fc.constantFrom(true, true, false),
})
const anyAuction = fc.record({ kind: fc.constant('auction' as const), mine: fc.boolean() })
const anyKey = fc.record({
  kind: fc.constant('key' as const),
  by: fc.nat(2),
  permissions: fc.constantFrom(1, 2, 3),
  isExpired: fc.boolean(),
})
const anyEvent = fc.oneof(
  { weight: 8, arbitrary: anyCommandEvent },
  { weight: 1, arbitrary: anyCancelAll },
  { weight: 1, arbitrary: anyOracle },
  { weight: 1, arbitrary: anyChain },
  { weight: 2, arbitrary: anyAuction },
  { weight: 1, arbitrary: anyKey },
)
type AnyCommand = typeof anyCommand extends fc.Arbitrary<infer One> ? One : never
type AnyItem = AnyCommand['items'][number]
type AnyEvent = typeof anyEvent extends fc.Arbitrary<infer One> ? One : never

describe('the engine beside the transactions of the api', () => {
  let exchange: ExchangeFixture
  let twins: CommandTwins
  let users: User[]
  const hashes: OrderHash[] = []
  const commands = new Map<string, TwinCommand>()
  const seen = new Map<string, number>()
  let salt = 1_000
  let run = 0

  before(async () => {
    exchange = await startExchange()
    users = [
      await createUser(exchange.db, 'ann', '100000'),
      await createUser(exchange.db, 'ben', '100000'),
      await createUser(exchange.db, 'cy', '12'),
    ]
    twins = new CommandTwins(exchange)
    await twins.start()
  })
  after(async () => {
    await twins.stop()
    await exchange.stop()
  })

  const note = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1)

  function orderOf(by: number, one: Extract<AnyItem, { kind: 'place' }>): SignedOrder {
    const spec = MARKETS[one.market] as MarketSpec
    const maker = (users[by] as User).address as Address
    const isMarket = one.type.endsWith('MARKET')
    const isConditional = one.type !== 'MARKET' && one.type !== 'LIMIT'
    const middle = spec === perpetual ? 1_000 : 500
    const order = {
      marketId: spec.marketId,
      maker,
      side: one.isLong ? ('LONG' as const) : ('SHORT' as const),
      type: one.type,
      price: (isMarket ? 0 : middle + one.offset) as Ticks,
      quantity: one.quantity as Steps,
      trigger: (isConditional ? middle + 20 : 0) as Ticks,
      leverage: one.leverage,
      reduceOnly: one.reduceOnly || /PROFIT|LOSS/.test(one.type),
      expiration: one.expiration as Seconds,
      salt: BigInt(one.salt ?? salt++),
    }
    const signer = { maker, key: KEY, stranger: STRANGER }[one.signer] as Address
    const hash = hashOrder(order, spec, keccak)
    hashes.push(hash)
    return { ...order, hash, signer, signature: `0x${'11'.repeat(66)}` }
  }

  function itemOf(by: number, one: AnyItem): ApiItem {
    switch (one.kind) {
      case 'place': {
        const spec = MARKETS[one.market] as MarketSpec
        return { kind: 'place', spec, order: orderOf(by, one), clientOrderId: one.label }
      }
      case 'cancel': {
        const known = hashes.at(-1 - (one.pick % Math.max(1, hashes.length)))
        const hash = one.isUnknown || known === undefined ? `0x${'0f'.repeat(32)}` : known
        return { kind: 'cancel', hash, reason: one.note }
      }
      case 'refused':
        return { kind: 'refused', error: new ApiError('INVALID_FIELD', { field: 'price', received: 'x' }) }
    }
  }

  /** The markets that the api would lock. */
  async function marketsOf(items: readonly ApiItem[]): Promise<MarketSpec[]> {
    const cancelled = items.flatMap((item) => (item.kind === 'cancel' ? [item.hash] : []))
    const stored =
      cancelled.length === 0
        ? []
        : await exchange.db.selectFrom('orders').select('market_id').where('hash', 'in', cancelled).execute()
    const placed = items.flatMap((item) => (item.kind === 'place' ? [item.spec.marketId as number] : []))
    const ids = new Set([...placed, ...stored.map(({ market_id }) => market_id)])
    return MARKETS.filter(({ marketId }) => ids.has(marketId))
  }

  async function twinOf({ by, items, isAtomic, request, repeat }: AnyCommand): Promise<TwinCommand> {
    const userId = (users[by] as User).userId
    const name = `${request} ${run}`
    const key = `${userId} ${name}`
    const known = request !== null && repeat ? commands.get(key) : undefined
    if (known !== undefined) return known
    const own = items.map((one) => itemOf(by, one))
    const twin: TwinCommand = {
      kind: 'place',
      userId,
      markets: await marketsOf(own),
      items: own,
      isAtomic,
      request: request === null ? null : { id: name, digest: Buffer.from(`${hashes.length}`.padStart(32)) },
    }
    if (request !== null && !commands.has(key)) commands.set(key, twin)
    return twin
  }

  async function runCommand(any: AnyCommand): Promise<void> {
    const twin = await twinOf(any)
    const { engine, tables, entries, decision, report } = await twins.run(twin, Date.now() as Millis)
    expect(engine).to.deep.equal(tables)
    note(decision.kind === 'refused' ? decision.refusal.code : decision.kind)
    if (decision.kind === 'done')
      for (const result of decision.results)
        note(result.kind === 'refused' ? result.refusal.code : result.kind)
    if (decision.kind !== 'done') expect(entries).to.deep.equal([])
    const completed = requestOf(entries)
    if (completed === null) return
    // The journal of the tables has no row for it.
    const { kind: _, ...request } = completed
    twins.shadow.state.requests.put(request)
    await expectSameBatch(twin, request.client_request_id, request, report as CommandReport)
  }

  /** From the engine's row of a request a repeated batch gets the answer that the api would have stored. */
  async function expectSameBatch(
    { items }: TwinCommand,
    id: string,
    request: StoredRequest,
    report: CommandReport,
  ): Promise<void> {
    if (items.some(({ kind }) => kind === 'cancel')) return
    const body = { client_request_id: id, mode: 'best_effort', orders: [] } as const
    const orders = await twins.findOrders(hashesOfRequest(request))
    const batch = batchOfRequest(request, body, {
      specs: new Map(MARKETS.map((spec) => [spec.marketId as number, spec])),
      find: (hash) => orders.get(hash) as StoredOrder,
      bookmark: twins.epochs.bookmark,
    })
    expect(plain(batch)).to.deep.equal(plain(toStoredBatch(body as never, items, report)))
    note('stored batch')
  }

  async function runCancelAll({ by, market }: Extract<AnyEvent, { kind: 'cancel_all' }>): Promise<void> {
    const { userId } = users[by] as User
    const resting = await exchange.db
      .selectFrom('resting')
      .select('market_id')
      .where('user_id', '=', userId)
      .where('orders', '>', 0)
      .execute()
    const ids = market === null ? resting.map(({ market_id }) => market_id) : [MARKETS[market]?.marketId]
    const isEverywhere = market === null
    const twin: TwinCommand = {
      kind: 'cancel',
      userId,
      markets: MARKETS.filter(({ marketId }) => ids.includes(marketId)),
      items: [{ kind: 'cancel_all', reason: 'all', isEverywhere }],
      isAtomic: false,
      request: null,
    }
    const { engine, tables, entries } = await twins.run(twin, Date.now() as Millis)
    expect(engine).to.deep.equal(tables)
    if (entries.length > 0) note(isEverywhere ? 'cancel everywhere' : 'cancel market')
  }

  async function storeKey(event: Extract<AnyEvent, { kind: 'key' }>): Promise<void> {
    const { address: owner } = users[event.by] as User
    const at = Math.floor(Date.now() / 1000)
    const state = {
      permissions: event.permissions,
      registered_at: at,
      expires_at: event.isExpired ? at - 5 : at + 86_400,
      revoked_at: null,
    }
    await exchange.db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, ACCOUNTS_SHARD)
      await saveSessionKey(tx, { owner, key: KEY }, state, 1)
      const row = {
        kind: 'session_key_changed',
        rollback: false,
        owner,
        key: KEY,
        before: null,
        after: state,
      } as const
      await appendRows(tx, head, [{ ...row, block: 1, tx_hash: '0x', log_index: 0, at }])
    })
  }

  async function take(event: AnyEvent): Promise<void> {
    switch (event.kind) {
      case 'command':
        return runCommand(event.command)
      case 'cancel_all':
        return runCancelAll(event)
      case 'oracle': {
        const observedAt = Date.now() - (event.stale ? 700_000 : 0)
        return setOracle(exchange.db, perpetual, String(100 + event.ticks / 10), observedAt)
      }
      case 'chain': {
        const completed_at = Date.now() - (event.isSeen ? 0 : 700_000)
        await exchange.db.updateTable('chain_progress').set({ completed_at }).execute()
        return
      }
      case 'auction': {
        await setOracle(exchange.db, perpetual, '100')
        const batch = await runAuction(exchange)
        if (batch !== null) note('batch')
        if (batch !== null && event.mine) await minePart(exchange)
        return
      }
      case 'key':
        return storeKey(event)
    }
  }

  async function reset(): Promise<void> {
    await setOracle(exchange.db, perpetual, '100')
    await setOracle(exchange.db, binary, '0.5')
    await exchange.db.updateTable('chain_progress').set({ completed_at: Date.now() }).execute()
  }

  it('when any commands are decided, rows and answers are the same', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyEvent, { minLength: 10, maxLength: 25 }), async (events) => {
        await reset()
        run++
        for (const event of events) await take(event)
      }),
      { numRuns: 40 },
    )
    expect(await twins.shadow.compare()).to.deep.equal([])
    expect(twins.faults).to.deep.equal([])
    await expectConsistentAccounting(exchange.db)
    const missed = [
      'placed',
      'cancelled',
      'repeated',
      'ITEMS_REFUSED',
      'SALT_USED',
      'batch',
      'NOT_YOURS',
      'cancel everywhere',
      'cancel market',
      'stored batch',
    ].filter((what) => !seen.has(what))
    expect(missed, JSON.stringify([...seen])).to.deep.equal([])
  }).timeout(300_000)
})
