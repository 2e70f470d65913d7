/** Laws of brackets and of reduce-only fills, over random orders, marks, auctions and voids. */
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
import type { OrderRow } from '../../../domain/exchange/tables/orders.ts'
import { toHex } from '../../../domain/hex.ts'
import {
  ACCOUNTS_SHARD,
  type JournalRow,
  marketShard,
  type OrderPlaced,
} from '../../../domain/journal/journal-row.ts'
import { bracketRole, isExit } from '../../../domain/orders/brackets.ts'
import type { OrderType, Side } from '../../../domain/orders/order.ts'
import { isClosable, isTerminal, unmatched } from '../../../domain/orders/order-state.ts'
import type { Address, OrderHash, Seconds, Steps, Ticks, UserId } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'
import { TurnMarket } from './support/turn-market.ts'

const USERS = 4
const DEPOSIT = 10n ** 22n
const { marketId } = perpetual

interface AnyOrder {
  readonly type: OrderType
  readonly side: Side
  readonly limit: number
  readonly trigger: number
  readonly steps: number
  readonly reduceOnly: boolean
  readonly bracket: number | undefined
}

const price = fc.integer({ min: 990, max: 1010 })
const steps = fc.integer({ min: 10, max: 120 })
const anyPlain: fc.Arbitrary<AnyOrder> = fc.record({
  type: fc.constantFrom<OrderType>('LIMIT', 'LIMIT', 'MARKET'),
  side: fc.constantFrom<Side>('LONG', 'SHORT'),
  limit: price,
  trigger: price,
  steps,
  reduceOnly: fc.constantFrom(false, false, true),
  bracket: fc.constant(undefined),
})

type Act =
  | { readonly act: 'place'; readonly by: number; readonly order: AnyOrder }
  | {
      readonly act: 'bracket'
      readonly by: number
      readonly side: Side
      readonly order: AnyOrder
      readonly profit: AnyOrder
      readonly loss: AnyOrder
      readonly hasEntry: boolean
      readonly bracket: number
    }
  | { readonly act: 'close'; readonly by: number; readonly steps: number }
  | { readonly act: 'cancel'; readonly pick: number }
  | { readonly act: 'replace'; readonly pick: number; readonly limit: number; readonly steps: number }
  | { readonly act: 'turn'; readonly wait: number; readonly oracle: number }
  | { readonly act: 'void' }

const by = fc.integer({ min: 1, max: USERS })
const anyAct: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ act: fc.constant('place' as const), by, order: anyPlain }) },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('bracket' as const),
      by,
      side: fc.constantFrom<Side>('LONG', 'SHORT'),
      order: anyPlain,
      profit: anyPlain,
      loss: anyPlain,
      hasEntry: fc.constantFrom(true, true, true, false),
      bracket: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('close' as const), by, steps }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('cancel' as const), pick: fc.nat(200) }) },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant('replace' as const), pick: fc.nat(200), limit: price, steps }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('turn' as const),
      wait: fc.constantFrom(200, 1_000, 1_000, 2_500),
      oracle: fc.integer({ min: 988, max: 1012 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('void' as const) }) },
)

const hexOf = (number: number, bytes: number): `0x${string}` =>
  `0x${number.toString(16).padStart(bytes * 2, '0')}`
const opposite = (side: Side): Side => (side === 'LONG' ? 'SHORT' : 'LONG')

class Trading extends TurnMarket {
  salt = 0

  newOrder(account: number, order: AnyOrder): NewOrder {
    this.salt++
    const maker = hexOf(account, 20) as Address
    const isMarket = order.type.endsWith('MARKET')
    const isConditional = order.type !== 'LIMIT' && order.type !== 'MARKET'
    return {
      order: {
        marketId,
        maker,
        side: order.side,
        type: order.type,
        price: (isMarket ? 0 : order.limit) as Ticks,
        quantity: order.steps as Steps,
        trigger: (isConditional ? order.trigger : 0) as Ticks,
        leverage: 5,
        reduceOnly: order.reduceOnly,
        expiration: 0 as Seconds,
        salt: BigInt(this.salt),
        hash: hexOf(this.salt, 32) as OrderHash,
        signer: maker,
        signature: `0x${'11'.repeat(66)}`,
      },
      clientOrderId: null,
      ...(order.bracket !== undefined && {
        flags: { timeInForce: 'gtc', postOnly: false, bracket: order.bracket },
      }),
      absentUpTo: null,
    }
  }

  decideItems(account: number, items: readonly Item[]): readonly ItemResult[] {
    const userId = account as UserId
    const command: OrdersCommand = { kind: 'orders', userId, items, isAtomic: false, request: null }
    const { answer } = this.take<OrdersCommand, OrdersAnswer>(decideOrders, command)
    return (answer as Done).results
  }

  placeAll(account: number, orders: readonly AnyOrder[]): readonly ItemResult[] {
    return this.decideItems(
      account,
      orders.map((order) => ({ kind: 'place', ...this.newOrder(account, order) })),
    )
  }

  live(): OrderRow[] {
    return [...this.state.orders.rows()].filter(({ status }) => !isTerminal(status))
  }

  act(act: Act): void {
    switch (act.act) {
      case 'turn':
        this.wait(act.wait, act.oracle)
        this.turn()
        return
      case 'place':
        this.placeAll(act.by, [act.order])
        return
      case 'bracket':
        this.placeAll(act.by, bracketOf(act))
        return
      case 'close': {
        const size = this.state.positions.get(act.by as UserId, marketId)?.matchedSize ?? 0
        const side = size > 0 ? 'SHORT' : 'LONG'
        const order = {
          type: 'MARKET',
          side,
          limit: 0,
          trigger: 0,
          steps: act.steps,
          reduceOnly: true,
        } as const
        this.placeAll(act.by, [{ ...order, bracket: undefined }])
        return
      }
      case 'void':
        this.voidAll()
        return
      default:
        this.change(act)
    }
  }

  /** Cancels or replaces a live order. */
  change(act: Extract<Act, { readonly act: 'cancel' | 'replace' }>): void {
    const live = this.live()
    const old = live[act.pick % Math.max(1, live.length)]
    if (old === undefined) return
    const { hash } = this.state.signatures.need(marketId, old.accepted)
    const target = { hash, ended: null }
    if (act.act === 'cancel') {
      this.decideItems(old.account, [{ kind: 'cancel', target, note: null }])
      return
    }
    const { side, type, reduceOnly, trigger } = old
    const order = { side, type, reduceOnly, trigger, limit: act.limit, steps: act.steps, bracket: undefined }
    const item = this.newOrder(old.account, order)
    this.decideItems(old.account, [{ kind: 'replace', ...item, target, ifFilled: 'reduce' }])
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

/** Exits at a limit and at the market, on either side of the prices; many trigger at once. */
function bracketOf(act: Extract<Act, { readonly act: 'bracket' }>): AnyOrder[] {
  const { side, order, profit, loss, hasEntry, bracket } = act
  const entry = { ...order, side, reduceOnly: false, bracket }
  const exit = { side: opposite(side), reduceOnly: true, bracket, steps: order.steps }
  return [
    ...(hasEntry ? [entry] : []),
    { ...profit, ...exit, type: 'TAKE_PROFIT_LIMIT' },
    { ...loss, ...exit, type: 'STOP_LOSS_MARKET' },
  ]
}

/** In every state between two decisions. */
function checkBrackets({ state }: Trading): void {
  const members = [...state.orders.rows()].filter((order) => order.bracket > 0 && !isTerminal(order.status))
  const groups = Map.groupBy(members, ({ account, bracket }) => `${account}-${bracket}`)
  for (const [name, live] of groups) {
    const [first] = live as [OrderRow]
    expect(state.brackets.of(first)).to.deep.equal(live.map(({ accepted }) => accepted).sort((a, b) => a - b))
    const open = live.filter(isClosable)
    for (const role of ['entry', 'take_profit', 'stop_loss'])
      expect(open.filter((order) => bracketRole(order) === role).length, `${role} of ${name}`).to.be.at.most(
        1,
      )
  }
  expect(state.brackets.size).to.equal(members.length)
}

/** Reduce-only orders fill in a batch at most the position before it. */
function checkReduceOnly(
  rows: readonly JournalRow[],
  sizes: ReadonlyMap<number, number>,
  market: Trading,
): void {
  for (const row of rows) {
    if (row.kind !== 'batch_cleared') continue
    const reduced = new Map<number, number>()
    for (const { order_id, user_id, side, steps: filled } of row.fills) {
      const order = market.state.orders.need(marketId, Number(order_id.split('-')[1]))
      if (!order.reduceOnly) continue
      expect(Math.sign(sizes.get(user_id) ?? 0), `the position that ${order_id} reduces`).to.equal(
        side === 'LONG' ? -1 : 1,
      )
      reduced.set(user_id, (reduced.get(user_id) ?? 0) + filled)
    }
    for (const [user, filled] of reduced)
      expect(filled, `reduced of account ${user}`).to.be.at.most(Math.abs(sizes.get(user) ?? 0))
  }
}

const sizesOf = ({ state }: Trading): Map<number, number> =>
  new Map([...state.positions.rows()].map(({ userId, matchedSize }) => [userId, matchedSize]))

function run(acts: readonly Act[], after: (market: Trading) => void = () => {}): Trading {
  const market = new Trading(USERS, DEPOSIT)
  for (const act of acts) {
    const [sizes, from] = [sizesOf(market), market.rows.length]
    market.act(act)
    checkReduceOnly(market.rows.slice(from), sizes, market)
    after(market)
  }
  return market
}

const placements = (rows: readonly JournalRow[]): OrderPlaced[] =>
  rows.filter((row): row is OrderPlaced & JournalRow => row.kind === 'order_placed')

describe('brackets and closes', () => {
  it('when random brackets are traded, replaced, cancelled and voided, exits end with their cause and no reduce-only fill exceeds the position', () => {
    const seen = { dormant: 0, woken: 0, replaced: 0, ENTRY_ENDED: 0, EXIT_TRIGGERED: 0, POSITION_CLOSED: 0 }
    fc.assert(
      fc.property(fc.array(anyAct, { minLength: 15, maxLength: 70 }), (acts) => {
        const market = run(acts, (after) => {
          expect(violations(after.state)).to.deep.equal([])
          checkBrackets(after)
        })
        for (const row of placements(market.rows)) {
          if (row.dormant) seen.dormant++
          if (row.dormant && !market.state.orders.need(marketId, Number(row.order_id.split('-')[1])).dormant)
            seen.woken++
          if (row.bracket !== undefined && row.replaces !== undefined) seen.replaced++
        }
        for (const order of market.state.orders.rows()) {
          const reason = order.statusReason ?? order.closingReason
          if (reason !== null && reason in seen) seen[reason as keyof typeof seen]++
        }
      }),
      { numRuns: 150 },
    )
    for (const [name, count] of Object.entries(seen)) expect(count, name).to.be.above(0)
  })

  it('when an order of a bracket ends, the orders that depend on it end in the same decision', () => {
    fc.assert(
      fc.property(fc.array(anyAct, { minLength: 10, maxLength: 50 }), (acts) => {
        const market = run(acts)
        // Commands of traders are one decision each: each live entry is cancelled in one.
        for (const entry of market.live().filter((order) => order.bracket > 0 && !isExit(order))) {
          if (entry.closingReason !== null || entry.filled + entry.settling + entry.unused > 0) continue
          const { hash } = market.state.signatures.need(marketId, entry.accepted)
          const exits = market
            .live()
            .filter((order) => isExit(order) && isBeside(order, entry) && isOpen(order))
          const from = market.rows.length
          market.decideItems(entry.account, [{ kind: 'cancel', target: { hash, ended: null }, note: null }])
          const ended = market.rows.slice(from).filter((row) => row.kind === 'order_ended')
          expect(ended.length).to.equal(1 + exits.length)
          for (const row of ended.slice(1)) expect(row.reason).to.equal('ENTRY_ENDED')
        }
      }),
      { numRuns: 60 },
    )
  })

  it('when the rows of any such trading are applied again, or follow a checkpoint, the digest is the same', () => {
    fc.assert(
      fc.property(fc.array(anyAct, { minLength: 10, maxLength: 40 }), fc.nat(40), (acts, at) => {
        const market = run(acts)
        const heads = new Map<string, number>()
        const entries = market.rows.map((row) => {
          const isOfAccounts = row.kind === 'user_created' || row.kind === 'balance_changed'
          const shard = isOfAccounts ? ACCOUNTS_SHARD : marketShard(marketId)
          const seq = (heads.get(shard) ?? 0) + 1
          heads.set(shard, seq)
          return { shard, seq, row: JSON.parse(JSON.stringify(row)) as JournalRow }
        })
        const [again, loadable] = [createState(), createState()]
        applyAll(again, entries)
        applyAll(loadable, entries.slice(0, at))
        const loaded = load(serialize(loadable))
        applyAll(loaded, entries.slice(at))
        for (const state of [again, loaded]) {
          expect(toHex(digestOf(state))).to.equal(toHex(digestOf(market.state)))
          expect(state.brackets.size).to.equal(market.state.brackets.size)
        }
      }),
      { numRuns: 40 },
    )
  })
})

const isBeside = (a: OrderRow, b: OrderRow): boolean => a.account === b.account && a.bracket === b.bracket
const isOpen = (order: OrderRow): boolean => order.closingReason === null && unmatched(order) > 0
