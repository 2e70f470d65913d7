/** Laws of the commands of traders, for random commands on a state that changes by them alone. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { decideCancelAll } from '../../../../domain/exchange/decide/orders/cancel-all.ts'
import type {
  CancelAllCommand,
  CancelAllStep,
  Cancelled,
  Done,
  Item,
  ItemResult,
  OrdersAnswer,
  OrdersCommand,
  Placed,
} from '../../../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../../../domain/exchange/decide/orders/decide-orders.ts'
import { violations } from '../../../../domain/exchange/laws.ts'
import type { ExchangeState } from '../../../../domain/exchange/state.ts'
import { isTerminal } from '../../../../domain/orders/order-state.ts'
import type { MarketId, OrderHash, Seq, UserId } from '../../../../domain/units.ts'
import { addressOf, DecidedExchange, MARKETS, orderOf, userOf } from './support/decided-exchange.ts'

const BALANCES = ['1000', '30', '0.5']

const anyPlacement = fc.record({
  kind: fc.constant('place' as const),
  market: fc.nat(1),
  isLong: fc.boolean(),
  type: fc.constantFrom('LIMIT' as const, 'LIMIT' as const, 'MARKET' as const),
  offset: fc.constantFrom(-40, -2, 0, 2, 90),
  quantity: fc.constantFrom(1, 20, 500, 4_000),
  salt: fc.nat(30),
  label: fc.constantFrom<string | null>(null, null, 'a', 'b'),
})
const anyCancel = fc.record({
  kind: fc.constant('cancel' as const),
  pick: fc.nat(60),
  label: fc.constantFrom<string | null>(null, null, null, 'a'),
})
const anyCommand = fc.record({
  by: fc.integer({ min: 1, max: 3 }),
  items: fc.array(fc.oneof({ weight: 3, arbitrary: anyPlacement }, { weight: 1, arbitrary: anyCancel }), {
    minLength: 1,
    maxLength: 5,
  }),
  isAtomic: fc.boolean(),
  request: fc.constantFrom<string | null>(null, 'one', 'two'),
  digest: fc.constantFrom('0x01', '0x01', '0x01', '0x02'),
})
type AnyCommand = typeof anyCommand extends fc.Arbitrary<infer One> ? One : never

const commandOf = (
  hashes: OrderHash[],
  { by, items, isAtomic, request, digest }: AnyCommand,
): OrdersCommand => ({
  kind: 'orders',
  userId: userOf(by),
  items: items.map((one): Item => {
    if (one.kind === 'cancel') {
      const hash = hashes[one.pick % Math.max(1, hashes.length)] ?? (`0x${'00'.repeat(32)}` as OrderHash)
      const target = one.label === null ? { hash, ended: null } : { label: one.label }
      return { kind: 'cancel', target, note: null }
    }
    const order = orderOf({ ...one, by })
    hashes.push(order.hash)
    return { kind: 'place', order, clientOrderId: one.label, absentUpTo: null }
  }),
  isAtomic,
  request: request === null ? null : { id: request, digest, absentUpTo: null },
})

/** Every index finds what a search through the table finds. */
function checkIndexes({ orders, signatures, orderIndex }: ExchangeState): void {
  for (const order of orders.rows()) {
    const { marketId, account, salt, accepted } = order
    const { hash, clientOrderId } = signatures.need(marketId, accepted)
    expect(orderIndex.withHash(hash)).to.deep.equal(order)
    expect(orderIndex.withSalt(marketId, account, salt)).to.deep.equal(order)
    if (clientOrderId === null) continue
    const live = [...orders.rows()].filter(
      (one) =>
        one.account === account &&
        !isTerminal(one.status) &&
        signatures.need(one.marketId, one.accepted).clientOrderId === clientOrderId,
    )
    expect(live.length).to.be.at.most(1)
    expect(orderIndex.liveWithLabel(account, clientOrderId)).to.deep.equal(live[0])
  }
  for (const { marketId } of MARKETS)
    for (const account of [1, 2, 3] as UserId[]) {
      const live = [...orders.rows()].filter(
        (one) => one.marketId === marketId && one.account === account && !isTerminal(one.status),
      )
      expect(orderIndex.liveOf(marketId, account)).to.deep.equal(live.sort((a, b) => a.seq - b.seq))
    }
}

const isDecided = (result: ItemResult): result is Placed | Cancelled =>
  result.kind === 'placed' || result.kind === 'cancelled'

const withAmounts = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}` : inner))

describe('commands of traders', () => {
  it('when any commands are decided, reservations add up, no account is overdrawn, and the indexes are complete', () => {
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 25 }), (commands) => {
        const exchange = new DecidedExchange(BALANCES)
        const hashes: OrderHash[] = []
        for (const one of commands) exchange.take(decideOrders, commandOf(hashes, one))
        expect(violations(exchange.state)).to.deep.equal([])
        for (const { free, reserved } of exchange.state.accounts.rows())
          expect(reserved <= free && reserved >= 0n).to.equal(true)
        checkIndexes(exchange.state)
        const { mark } = exchange.state.core.undo
        exchange.state.core.undo.undoTo(0)
        expect(exchange.state.orders.size).to.equal(0)
        expect(mark).to.be.above(0)
      }),
      { numRuns: 60 },
    )
  })

  it('when a command is refused or repeated, it has no row; its balance is that of the state', () => {
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 25 }), (commands) => {
        const exchange = new DecidedExchange(BALANCES)
        const hashes: OrderHash[] = []
        for (const one of commands) {
          const command = commandOf(hashes, one)
          const { entries, answer } = exchange.take(decideOrders, command)
          if (answer.kind !== 'done') {
            expect(entries).to.deep.equal([])
            continue
          }
          const { free, reserved } = exchange.state.accounts.need(command.userId)
          expect([answer.balance.free, answer.balance.reserved]).to.deep.equal([free, reserved])
          const decided = answer.results.filter(isDecided)
          const effects = decided.filter(({ isDuplicate }) => !isDuplicate)
          const changes = entries.filter(({ row }) => row.kind.startsWith('order_'))
          expect(changes.length).to.equal(effects.length)
          if (command.isAtomic) expect(answer.results.every(({ kind }) => kind !== 'refused')).to.equal(true)
          for (const { readAfter } of [answer, ...decided])
            expect(readAfter.seq).to.be.at.most(exchange.state.heads.need(readAfter.marketId).seq)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('when a named command is repeated at any later time, it is not executed and its result is the first one', () => {
    fc.assert(
      fc.property(anyCommand, fc.array(anyCommand, { maxLength: 8 }), (first, others) => {
        const exchange = new DecidedExchange(BALANCES)
        const hashes: OrderHash[] = []
        const named = { ...commandOf(hashes, first), request: { id: 'x', digest: '0x01', absentUpTo: null } }
        const { answer, entries } = exchange.take(decideOrders, named)
        for (const one of others) exchange.take(decideOrders, commandOf(hashes, one))
        const again = exchange.take(decideOrders, named)
        if (answer.kind !== 'done') return
        expect(again.entries).to.deep.equal([])
        const row = entries.at(-1)?.row as unknown as Record<string, unknown>
        const { kind, request } = again.answer as Extract<OrdersAnswer, { readonly kind: 'repeated' }>
        expect(kind).to.equal('repeated')
        expect({ ...request, kind: 'request_completed' }).to.deep.equal({ ...row, seq: request.seq })
        const other = { ...named, request: { ...named.request, digest: '0x02' } }
        expect(exchange.take(decideOrders, other).answer).to.deep.equal({
          kind: 'refused',
          refusal: { code: 'CLIENT_REQUEST_REUSED', received: 'x' },
        })
      }),
      { numRuns: 60 },
    )
  })

  it('when an atomic command has a refused item, the refusal names no order of the command itself', () => {
    const exchange = new DecidedExchange(BALANCES)
    const place = (salt: number, label: string | null, offset = 0): Item => ({
      kind: 'place',
      order: orderOf({ by: 1, salt, offset }),
      clientOrderId: label,
      absentUpTo: null,
    })
    const items = [place(1, 'a'), place(1, null, 2), place(2, 'a')]
    const command: OrdersCommand = { kind: 'orders', userId: userOf(1), items, isAtomic: true, request: null }
    const { answer, entries } = exchange.take(decideOrders, command)
    expect(entries).to.deep.equal([])
    expect(answer).to.deep.equal({
      kind: 'refused',
      refusal: {
        code: 'ITEMS_REFUSED',
        items: [
          { index: 1, refusal: { code: 'SALT_USED', received: '1', order: { sameAs: 0 } } },
          { index: 2, refusal: { code: 'CLIENT_ORDER_ID_USED', received: 'a', order: { sameAs: 0 } } },
        ],
      },
    })
  })

  it('when an item is answered already, it keeps its place, refuses no atomic command, and is stored unchanged', () => {
    const exchange = new DecidedExchange(BALANCES)
    const answered: Item = { kind: 'answered', answer: { order_hash: '0x1' } }
    const order = orderOf({ by: 1, salt: 1, offset: 0 })
    const command: OrdersCommand = {
      kind: 'orders',
      userId: userOf(1),
      items: [answered, { kind: 'place', order, clientOrderId: null, absentUpTo: null }],
      isAtomic: true,
      request: { id: 'one', digest: '00', absentUpTo: null },
    }
    const { answer } = exchange.take(decideOrders, command)
    expect((answer as Done).results.map(({ kind }) => kind)).to.deep.equal(['answered', 'placed'])
    const repeated = exchange.take(decideOrders, command).answer
    expect(repeated.kind === 'repeated' && repeated.request.results[0]).to.deep.equal(answered)
  })

  it('given an ended order that was released, a command that depends on it asks for a look-up as of the release', () => {
    const exchange = new DecidedExchange(BALANCES)
    const order = orderOf({ by: 1, salt: 1 })
    const place = (absentUpTo: number | null): OrdersCommand => ({
      kind: 'orders',
      userId: userOf(1),
      items: [{ kind: 'place', order, clientOrderId: null, absentUpTo: absentUpTo as Seq | null }],
      isAtomic: false,
      request: null,
    })
    const cancel = (
      ended: Extract<Extract<Item, { kind: 'cancel' }>['target'], { hash: unknown }>['ended'],
    ) =>
      exchange.take(decideOrders, {
        kind: 'orders',
        userId: userOf(1),
        items: [{ kind: 'cancel', target: { hash: order.hash, ended }, note: null }],
        isAtomic: false,
        request: null,
      }).answer
    exchange.take(decideOrders, place(null))
    cancel(null)
    const { marketId } = order
    const { seq } = exchange.state.heads.need(marketId)
    exchange.write(marketId, { kind: 'ended_released', up_to: seq })
    const lookAgain = { kind: 'look_again', upTo: [{ marketId, seq }] }
    expect(cancel(null)).to.deep.equal(lookAgain)
    expect(cancel({ absentUpTo: [{ marketId, seq: (seq - 1) as Seq }] })).to.deep.equal(lookAgain)
    const unknown = cancel({ absentUpTo: [{ marketId, seq }] }) as Done
    expect(unknown.results[0]).to.deep.include({ kind: 'refused' })
    const found = {
      marketId,
      accepted: 2 as Seq,
      account: userOf(1),
      status: 'CANCELLED',
      forced: false,
    } as const
    expect((cancel({ found }) as Done).results[0]).to.deep.include({ cancelled: true, isDuplicate: true })
    const other = cancel({ found: { ...found, account: userOf(2) } }) as Done
    expect(other.results[0]).to.deep.include({ refusal: { code: 'NOT_YOURS', hash: order.hash } })
    expect(exchange.take(decideOrders, place(seq - 1)).answer).to.deep.equal(lookAgain)
    expect(exchange.take(decideOrders, place(seq)).answer.kind).to.equal('done')
  })

  it('given a request that was released, the command asks for a look-up and then is a new one', () => {
    const exchange = new DecidedExchange(BALANCES)
    const named = (absentUpTo: Seq | null): OrdersCommand => ({
      kind: 'orders',
      userId: userOf(1),
      items: [],
      isAtomic: false,
      request: { id: 'x', digest: '0x01', absentUpTo },
    })
    exchange.take(decideOrders, named(null))
    expect(exchange.state.requests.size).to.equal(1)
    const { seq } = exchange.state.heads.need(0 as MarketId)
    exchange.write(0, { kind: 'requests_released', up_to: seq })
    expect(exchange.state.requests.size).to.equal(0)
    expect(exchange.take(decideOrders, named(null)).answer.kind).to.equal('look_again')
    expect(exchange.take(decideOrders, named(seq)).answer.kind).to.equal('done')
  })

  it('given an order of another account, a chain that is not read, or an unknown market, the placement is refused', () => {
    const exchange = new DecidedExchange(BALANCES)
    const refusalOf = (order: ReturnType<typeof orderOf>): unknown => {
      const items: Item[] = [{ kind: 'place', order, clientOrderId: null, absentUpTo: null }]
      const command: OrdersCommand = {
        kind: 'orders',
        userId: userOf(1),
        items,
        isAtomic: false,
        request: null,
      }
      const { answer, entries } = exchange.take(decideOrders, command)
      expect(entries).to.deep.equal([])
      const [result] = (answer as Done).results
      return result?.kind === 'refused' ? result.refusal : result?.kind
    }
    const order = orderOf({ by: 1, salt: 1 })
    const stolen = { code: 'MAKER_MISMATCH', received: addressOf(2), expected: addressOf(1) }
    expect(refusalOf({ ...order, maker: addressOf(2) })).to.deep.equal(stolen)
    const unlisted = { code: 'MARKET_NOT_FOUND', received: 99 }
    expect(refusalOf({ ...order, marketId: 99 as MarketId })).to.deep.equal(unlisted)
    exchange.chainSeenAt = null
    expect(refusalOf(order)).to.deep.equal({ code: 'CHAIN_UNSEEN', lastSeen: null })
  })
})

describe('a cancel of all orders', () => {
  const cancelAll = (marketId: MarketId | null): CancelAllCommand => ({
    kind: 'cancel_all',
    userId: userOf(1),
    marketId,
    note: null,
    covers: [],
  })
  const take = (exchange: DecidedExchange, command: CancelAllCommand | CancelAllStep) =>
    exchange.take<CancelAllCommand | CancelAllStep, OrdersAnswer, CancelAllStep>(decideCancelAll, command)

  it("when any orders rest, exactly the account's orders in the market end", () => {
    const anywhere = fc.constantFrom(null, ...MARKETS.map(({ marketId }) => marketId))
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 20 }), anywhere, (commands, marketId) => {
        const exchange = new DecidedExchange(BALANCES)
        const hashes: OrderHash[] = []
        for (const one of commands) exchange.take(decideOrders, commandOf(hashes, one))
        const isConcerned = (order: { account: number; marketId: MarketId }): boolean =>
          order.account === 1 && (marketId === null || order.marketId === marketId)
        const live = () => [...exchange.state.orders.rows()].filter(({ status }) => !isTerminal(status))
        const others = live().filter((order) => !isConcerned(order))
        const concerned = live().filter(isConcerned)
        const { answer, next } = take(exchange, cancelAll(marketId))
        expect(next).to.equal(null)
        expect((answer as Done).results.length).to.equal(concerned.length)
        expect(withAmounts(live())).to.equal(withAmounts(others))
        expect((answer as Done).balance.reserved).to.equal(exchange.state.accounts.need(1).reserved)
        expect(violations(exchange.state)).to.deep.equal([])
      }),
      { numRuns: 40 },
    )
  })

  it('given more orders than a step ends, further steps end the rest, but no order that was placed in between', () => {
    const exchange = new DecidedExchange(['10000000'])
    const place = (salt: number, market: number): void => {
      const items: Item[] = [
        { kind: 'place', order: orderOf({ by: 1, salt, market }), clientOrderId: null, absentUpTo: null },
      ]
      exchange.take(decideOrders, {
        kind: 'orders',
        userId: userOf(1),
        items,
        isAtomic: false,
        request: null,
      })
    }
    for (let salt = 0; salt < 500; salt++) for (const market of [0, 1]) place(salt, market)
    // As after a rollback of the chain: an account with more orders than it may place.
    const first = exchange.state.orders.need(1, 2)
    for (let extra = 0; extra < 10; extra++) {
      const accepted = (900_000 + extra) as Seq
      exchange.state.orders.put({ ...first, accepted, seq: accepted, salt: accepted, reserved: 0n as never })
      exchange.state.signatures.put({
        ...exchange.state.signatures.need(1, 2),
        accepted,
        hash: `0x${accepted.toString(16).padStart(64, 'f')}` as OrderHash,
      })
    }
    exchange.state.heads.put({ ...exchange.state.heads.need(1), seq: 1_000_000 as Seq })
    const begun = take(exchange, cancelAll(null))
    expect(begun.entries.length).to.equal(1_000)
    place(9_000, 1)
    const ended = take(exchange, begun.next as CancelAllStep)
    expect(ended.next).to.equal(null)
    expect((ended.answer as Done).results.length).to.equal(1_010)
    expect(exchange.state.orderIndex.liveOf(1 as MarketId, userOf(1)).length).to.equal(0)
    expect(exchange.state.orderIndex.liveOf(MARKETS[1]?.marketId as MarketId, userOf(1)).length).to.equal(1)
  })
})
