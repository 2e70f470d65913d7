/** Laws of post-only orders, `ioc` orders and replacements, over random books, auctions and voids. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { applyAll } from '../../../domain/exchange/apply.ts'
import { load, serialize } from '../../../domain/exchange/checkpoint.ts'
import {
  decideEnd,
  type EndAnswer,
  type RestartCommand,
  type VoidCommand,
} from '../../../domain/exchange/decide/chain/end-actions.ts'
import type {
  Done,
  Item,
  ItemResult,
  NewOrder,
  OrdersAnswer,
  OrdersCommand,
} from '../../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../../domain/exchange/decide/orders/decide-orders.ts'
import { violations } from '../../../domain/exchange/laws.ts'
import { pendingActions } from '../../../domain/exchange/queued-actions.ts'
import { createState, digestOf } from '../../../domain/exchange/state.ts'
import { toHex } from '../../../domain/hex.ts'
import type { BatchCleared } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow, OrderPlaced } from '../../../domain/journal/journal-row.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import type { OrderType } from '../../../domain/orders/order.ts'
import type { OrderFlags } from '../../../domain/orders/order-flags.ts'
import { isClosable, unmatched } from '../../../domain/orders/order-state.ts'
import type { Address, OrderHash, Seconds, Seq, Steps, Ticks, UserId } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'
import { TurnMarket } from './support/turn-market.ts'

const USERS = 4
const DEPOSIT = 10n ** 22n
const { marketId } = perpetual

interface AnyOrder {
  readonly type: OrderType
  readonly isLong: boolean
  readonly limit: number
  readonly steps: number
  readonly flags: OrderFlags
  readonly reduceOnly: boolean
  readonly label: string | null
}

const anyFlags: fc.Arbitrary<OrderFlags> = fc.constantFrom(
  { timeInForce: 'gtc', postOnly: false },
  { timeInForce: 'gtc', postOnly: false, builder: 'terminal' },
  { timeInForce: 'gtc', postOnly: true },
  { timeInForce: 'gtc', postOnly: true, builder: 'b'.repeat(32) },
  { timeInForce: 'ioc', postOnly: false },
)
const anyOrder: fc.Arbitrary<AnyOrder> = fc
  .record({
    type: fc.constantFrom<OrderType>('LIMIT', 'LIMIT', 'LIMIT', 'LIMIT', 'MARKET', 'STOP_LIMIT'),
    isLong: fc.boolean(),
    limit: fc.integer({ min: 990, max: 1010 }),
    steps: fc.integer({ min: 10, max: 300 }),
    flags: anyFlags,
    reduceOnly: fc.constantFrom(false, false, false, true),
    label: fc.constantFrom<string | null>(null, null, 'a', 'b'),
  })
  .map((order) =>
    order.type === 'LIMIT'
      ? order
      : {
          ...order,
          flags: {
            timeInForce: 'gtc',
            postOnly: false,
            ...(order.flags.builder !== undefined && { builder: order.flags.builder }),
          },
        },
  )

type Act =
  | { readonly act: 'place'; readonly by: number; readonly order: AnyOrder }
  | {
      readonly act: 'replace'
      readonly by: number
      readonly order: AnyOrder
      readonly pick: number
      readonly ifFilled: 'refuse' | 'reduce'
      readonly byLabel: boolean
    }
  | { readonly act: 'turn'; readonly wait: number; readonly oracle: number }
  | { readonly act: 'void' }

const by = fc.integer({ min: 1, max: USERS })
const anyAct: fc.Arbitrary<Act> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ act: fc.constant('place' as const), by, order: anyOrder }) },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('replace' as const),
      by,
      order: anyOrder,
      pick: fc.nat(40),
      ifFilled: fc.constantFrom('refuse' as const, 'reduce' as const),
      byLabel: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constant('turn' as const),
      wait: fc.constantFrom(200, 200, 1_000, 2_500),
      oracle: fc.integer({ min: 985, max: 1015 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('void' as const) }) },
)

const hexOf = (number: number, bytes: number): `0x${string}` =>
  `0x${number.toString(16).padStart(bytes * 2, '0')}`

class Trading extends TurnMarket {
  salt = 0
  readonly hashes: OrderHash[] = []

  newOrder(account: number, order: AnyOrder): NewOrder {
    this.salt++
    const maker = hexOf(account, 20) as Address
    const hash = hexOf(this.salt, 32) as OrderHash
    this.hashes.push(hash)
    return {
      order: {
        marketId,
        maker,
        side: order.isLong ? 'LONG' : 'SHORT',
        type: order.type,
        price: (order.type === 'MARKET' ? 0 : order.limit) as Ticks,
        quantity: order.steps as Steps,
        trigger: (order.type === 'STOP_LIMIT' ? order.limit : 0) as Ticks,
        leverage: 5,
        reduceOnly: order.reduceOnly,
        expiration: 0 as Seconds,
        salt: BigInt(this.salt),
        hash,
        signer: maker,
        signature: `0x${'11'.repeat(66)}`,
      },
      clientOrderId: order.label,
      flags: order.flags,
      absentUpTo: null,
    }
  }

  decideItem(account: number, item: Item): ItemResult {
    const command: OrdersCommand = {
      kind: 'orders',
      userId: account as UserId,
      items: [item],
      isAtomic: false,
      request: null,
    }
    const { answer } = this.take<OrdersCommand, OrdersAnswer>(decideOrders, command)
    const [result] = (answer as Done).results
    expect((answer as Done).balance.reserved).to.equal(this.state.accounts.need(account).reserved)
    return result as ItemResult
  }

  act(act: Act): void {
    if (act.act === 'turn') {
      this.wait(act.wait, act.oracle)
      this.turn()
    } else if (act.act === 'void') this.voidAll()
    else if (act.act === 'place')
      this.decideItem(act.by, { kind: 'place', ...this.newOrder(act.by, act.order) })
    else {
      const known = act.ifFilled === 'reduce' ? this.partlyFilled() : this.hashes
      const hashes = known.length > 0 ? known : this.hashes
      const hash = hashes[act.pick % Math.max(1, hashes.length)] ?? (hexOf(0, 32) as OrderHash)
      const target = act.byLabel ? { label: 'a' } : { hash, ended: null }
      const { order } = this.newOrder(act.by, act.order)
      const label = act.order.label
      const old = this.state.orderIndex.withHash(hash)
      // Most replacements are of the order's own account and side.
      const account = old?.account ?? act.by
      const side = old?.side ?? order.side
      const maker = hexOf(account, 20) as Address
      const signed = { ...order, side, maker, signer: maker }
      this.decideItem(account, {
        kind: 'replace',
        order: signed,
        clientOrderId: label,
        flags: act.order.flags,
        absentUpTo: null,
        target,
        ifFilled: act.ifFilled,
      })
    }
  }

  partlyFilled(): OrderHash[] {
    return [...this.state.orders.rows()]
      .filter((order) => isClosable(order) && order.settling > 0 && unmatched(order) > 0)
      .map(({ accepted }) => this.state.signatures.need(marketId, accepted).hash)
  }

  voidAll(): void {
    const [first] = pendingActions(this.state, marketId)
    if (first === undefined) return
    this.take<VoidCommand | RestartCommand, EndAnswer>(decideEnd, {
      kind: 'void',
      spec: perpetual,
      queueNo: first.queue_no,
      culprit: { kind: 'late', error: 'ActionTooOld' },
    })
  }
}

const placements = (rows: readonly JournalRow[]): OrderPlaced[] =>
  rows.filter((row): row is OrderPlaced & JournalRow => row.kind === 'order_placed')
const batches = (rows: readonly JournalRow[]): BatchCleared[] =>
  rows.filter((row): row is BatchCleared & JournalRow => row.kind === 'batch_cleared')

function checkLaws({ rows, state }: Trading): void {
  const placed = new Map(placements(rows).map((row) => [row.order_id, row]))
  const batchesOf = new Map<string, Set<number>>()
  for (const { batch_id, fills } of batches(rows))
    for (const { order_id, taker_steps } of fills) {
      const order = placed.get(order_id)
      if (order?.post_only) expect(taker_steps, `taker steps of the post-only order ${order_id}`).to.equal(0)
      batchesOf.set(order_id, (batchesOf.get(order_id) ?? new Set()).add(batch_id))
    }
  for (const [orderId, { time_in_force }] of placed)
    if (time_in_force === 'ioc')
      expect(batchesOf.get(orderId)?.size ?? 0, `batches of the ioc order ${orderId}`).to.be.at.most(1)
  for (const order of state.orders.rows()) {
    const { hash } = state.signatures.need(order.marketId, order.accepted)
    expect(order.quantity + order.unused).to.be.at.least(order.filled + order.settling)
    expect(state.orderIndex.withHash(hash)).to.deep.equal(order)
  }
  checkLabels(state)
}

function checkLabels(state: Trading['state']): void {
  for (const label of ['a', 'b'])
    for (let account = 1; account <= USERS; account++) {
      const found = state.orderIndex.liveWithLabel(account as UserId, label)
      const live = state.orderIndex
        .liveOf(marketId, account as UserId)
        .filter(
          ({ accepted, labelHash }) =>
            labelHash !== 0 && state.signatures.need(marketId, accepted).clientOrderId === label,
        )
      expect(live.length).to.be.at.most(1)
      expect(found).to.deep.equal(live[0])
    }
}

describe('post-only orders, ioc orders and replacements', () => {
  it('when random orders are placed, replaced, cleared and voided, no post-only order takes, no ioc order is in two batches, and reservations add up', () => {
    const seen = { taken: 0, ioc: 0, replaced: 0, reduced: 0 }
    fc.assert(
      fc.property(fc.array(anyAct, { minLength: 10, maxLength: 70 }), (acts) => {
        const market = new Trading(USERS, DEPOSIT)
        for (const act of acts) {
          market.act(act)
          expect(violations(market.state)).to.deep.equal([])
        }
        for (const { free, reserved } of market.state.accounts.rows())
          expect(reserved >= 0n && reserved <= free).to.equal(true)
        checkLaws(market)
        for (const { post_only, replaces, unused } of placements(market.rows)) {
          if (post_only) seen.taken++
          if (replaces !== undefined) seen.replaced++
          if (unused !== undefined) seen.reduced++
        }
        for (const row of market.rows)
          if (row.kind === 'order_ended' && row.reason === 'IOC_REMAINDER') seen.ioc++
      }),
      { numRuns: 120 },
    )
    for (const [name, count] of Object.entries(seen)) expect(count, name).to.be.above(0)
  })

  it('when an auction has run with an ioc order, the order is not in the book any more', () => {
    fc.assert(
      fc.property(fc.array(anyAct, { minLength: 5, maxLength: 40 }), (acts) => {
        const market = new Trading(USERS, DEPOSIT)
        for (const act of acts) {
          market.act(act)
          if (act.act !== 'turn') continue
          const left = market.state.books.of(marketId).book.iocOrders()
          expect(left).to.deep.equal([])
        }
      }),
      { numRuns: 60 },
    )
  })

  it('when the rows of any such trading are applied again, or follow a checkpoint, the digest is the same', () => {
    fc.assert(
      fc.property(fc.array(anyAct, { minLength: 10, maxLength: 40 }), fc.nat(30), (acts, at) => {
        const market = new Trading(USERS, DEPOSIT)
        for (const act of acts) market.act(act)
        const again = createState()
        const loadable = createState()
        const heads = new Map<string, number>()
        const entries = market.rows.map((row) => {
          const shard =
            row.kind === 'user_created' || row.kind === 'balance_changed'
              ? ACCOUNTS_SHARD
              : marketShard(marketId)
          const seq = (heads.get(shard) ?? 0) + 1
          heads.set(shard, seq)
          return { shard, seq, row: JSON.parse(JSON.stringify(row)) as JournalRow }
        })
        applyAll(again, entries)
        applyAll(loadable, entries.slice(0, at))
        const loaded = load(serialize(loadable))
        applyAll(loaded, entries.slice(at))
        expect(toHex(digestOf(again))).to.equal(toHex(digestOf(market.state)))
        expect(toHex(digestOf(loaded))).to.equal(toHex(digestOf(market.state)))
        expect(loaded.books.of(marketId).returning.best('LONG')).to.equal(
          market.state.books.of(marketId).returning.best('LONG'),
        )
      }),
      { numRuns: 40 },
    )
  })

  it('when a replacement is repeated, its answer names the same orders and it writes nothing', () => {
    fc.assert(
      fc.property(fc.array(anyAct, { minLength: 8, maxLength: 40 }), (acts) => {
        const market = new Trading(USERS, DEPOSIT)
        for (const act of acts) market.act(act)
        for (const row of placements(market.rows)) {
          if (row.replaces === undefined) continue
          const before = market.rows.length
          const target = market.state.signatures.need(marketId, Number(row.replaces.split('-')[1]) as Seq)
          const order = market.state.orders.need(marketId, Number(row.order_id.split('-')[1]) as Seq)
          const result = market.decideItem(row.user_id, {
            kind: 'replace',
            order: {
              ...order,
              marketId,
              maker: hexOf(row.user_id, 20) as Address,
              quantity: (order.quantity + order.unused) as Steps,
              salt: BigInt(row.salt),
              hash: row.hash as OrderHash,
              signer: hexOf(row.user_id, 20) as Address,
              signature: '0x',
            },
            clientOrderId: row.client_order_id ?? null,
            flags: {
              timeInForce: order.timeInForce,
              postOnly: order.postOnly,
              ...(row.builder !== undefined && { builder: row.builder }),
            },
            absentUpTo: null,
            target: { hash: target.hash, ended: null },
            ifFilled: 'refuse',
          })
          expect(result).to.deep.include({ kind: 'placed', isDuplicate: true })
          expect(result.kind === 'placed' && result.replaced?.orderId).to.equal(row.replaces)
          expect(market.rows.length).to.equal(before)
        }
      }),
      { numRuns: 40 },
    )
  })
})
