/** Dead-man switches against a model: which accounts lose their orders, whatever is armed, renewed, ended and due. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Item } from '../../../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../../../domain/exchange/decide/orders/decide-orders.ts'
import {
  type CancelFiredCommand,
  decideEndConnections,
  decideFireSwitches,
  decideHoldConnections,
  decideSetSwitch,
  type FireSwitchesCommand,
  hasFired,
} from '../../../../domain/exchange/decide/orders/switches.ts'
import { violations } from '../../../../domain/exchange/laws.ts'
import { isTerminal } from '../../../../domain/orders/order-state.ts'
import type { Millis } from '../../../../domain/units.ts'
import { DecidedExchange, orderOf, userOf } from './support/decided-exchange.ts'

const USERS = [1, 2, 3]
const by = fc.constantFrom(...USERS)
const connection = fc.nat(4)
const anyEvent = fc.oneof(
  fc.record({ kind: fc.constant('place' as const), by, market: fc.nat(1) }),
  fc.record({ kind: fc.constant('set' as const), by, seconds: fc.constantFrom(0, 5, 9) }),
  fc.record({
    kind: fc.constant('hold' as const),
    by,
    connection,
    seconds: fc.constantFrom(5, 9),
    keyName: fc.constantFrom(null, 'default', 'bot'),
  }),
  fc.record({ kind: fc.constant('end' as const), connection }),
  fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 4, 10) }),
)
type AnyEvent = typeof anyEvent extends fc.Arbitrary<infer One> ? One : never

interface Held {
  readonly user: number
  readonly keyName: string | null
  readonly fireAt: number
}

/** The engine's shell: it has the deadlines of connections and names those that are due. */
class Shell {
  readonly exchange = new DecidedExchange(['1000', '1000', '1000'])
  readonly deadlines = new Map<string, Held>()
  /** The accounts' switches by the model. */
  readonly armed = new Map<number, number>()
  /** Orders that should be live, by the model. */
  readonly live = new Set<string>()
  #salt = 0

  take(event: AnyEvent): void {
    const { exchange } = this
    switch (event.kind) {
      case 'place':
        this.#place(event.by, event.market)
        return
      case 'set': {
        const { now } = exchange
        const timeoutSeconds = event.seconds
        exchange.take(decideSetSwitch, { kind: 'set_switch', userId: userOf(event.by), timeoutSeconds })
        if (timeoutSeconds === 0) this.armed.delete(event.by)
        else this.armed.set(event.by, now + timeoutSeconds * 1_000)
        return
      }
      case 'hold': {
        const connectionId = `${event.by}/${event.connection}`
        const fireAt = exchange.now + event.seconds * 1_000
        const timeoutSeconds = event.seconds
        const one = {
          connectionId,
          userId: userOf(event.by),
          timeoutSeconds,
          keyName: event.keyName,
          fireInMs: timeoutSeconds * 1_000,
        }
        exchange.take(decideHoldConnections, { kind: 'hold_connections', connections: [one] })
        this.deadlines.set(connectionId, { user: event.by, keyName: event.keyName, fireAt })
        return
      }
      case 'end': {
        const connections = USERS.map((user) => `${user}/${event.connection}`)
        exchange.take(decideEndConnections, { kind: 'end_connections', connections })
        for (const one of connections) this.deadlines.delete(one)
        return
      }
      case 'pass':
        exchange.now = (exchange.now + event.seconds * 1_000) as Millis
        exchange.chainSeenAt = exchange.now
        this.#fire()
        return
    }
  }

  #place(user: number, market: number): void {
    const order = orderOf({ by: user, market, salt: this.#salt++ })
    const items: Item[] = [{ kind: 'place', order, clientOrderId: null, absentUpTo: null }]
    const command = { kind: 'orders', userId: userOf(user), items, isAtomic: false, request: null } as const
    const { entries } = this.exchange.take(decideOrders, command)
    if (entries.length > 0) this.live.add(order.hash)
  }

  #fire(): void {
    const { now, state } = this.exchange
    const isDue = ({ fireAt }: { readonly fireAt: number }): boolean => fireAt <= now
    const ended = [...this.deadlines].filter(([, one]) => isDue(one))
    const cancelled = new Set<number>()
    for (const [user, fireAt] of this.armed) if (fireAt <= now) cancelled.add(user)
    for (const [, one] of ended) if (!this.#isConnected(one, now)) cancelled.add(one.user)
    for (const user of cancelled) this.#forget(user, now)
    for (const [id] of ended) this.deadlines.delete(id)
    const due = ended.map(([connectionId, { fireAt }]) => ({ connectionId, fireAt: fireAt as Millis }))
    const command = { kind: 'fire_switches', due } as const
    this.exchange.takeAll<
      FireSwitchesCommand | CancelFiredCommand,
      { cancelled: number },
      CancelFiredCommand
    >(decideFireSwitches, command)
    expect(hasFired(state)).to.equal(false)
  }

  /** Whether another connection of the same account and credential is alive. */
  #isConnected({ user, keyName }: Held, now: number): boolean {
    return [...this.deadlines.values()].some(
      (one) => one.user === user && one.keyName === keyName && one.fireAt > now,
    )
  }

  /** Orders that were placed after a switch should have fired stay: the switch fires late. */
  #forget(user: number, now: number): void {
    const deadlines = [...this.deadlines.values()].filter((one) => one.user === user && one.fireAt <= now)
    const own =
      (this.armed.get(user) ?? Number.POSITIVE_INFINITY) <= now ? [this.armed.get(user) as number] : []
    const lost = deadlines.filter((one) => !this.#isConnected(one, now))
    const times = [...own, ...lost.map(({ fireAt }) => fireAt)]
    const firedAt = Math.max(...times)
    for (const { account, acceptedAt, marketId, accepted } of this.exchange.state.orders.rows())
      if (account === user && acceptedAt <= firedAt)
        this.live.delete(this.exchange.state.signatures.need(marketId, accepted).hash)
    if (own.length > 0) this.armed.delete(user)
  }
}

describe('dead-man switches', () => {
  it('when any switches are armed, renewed, ended and due, exactly the orders of fired switches end', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const shell = new Shell()
        for (const event of events) shell.take(event)
        const { state } = shell.exchange
        const live = [...state.orders.rows()]
          .filter(({ status }) => !isTerminal(status))
          .map(({ marketId, accepted }) => state.signatures.need(marketId, accepted).hash)
        expect(live.sort()).to.deep.equal([...shell.live].sort())
        expect([...state.switches.rows()].map((one) => [one.user_id, one.fire_at]).sort()).to.deep.equal(
          [...shell.armed].sort(),
        )
        expect(state.switchIndex.nextDeadline()).to.equal(
          shell.armed.size === 0 ? null : Math.min(...shell.armed.values()),
        )
        expect([...state.connectionSwitches.rows()].map((one) => one.connection_id).sort()).to.deep.equal(
          [...shell.deadlines.keys()].sort(),
        )
        expect(violations(state)).to.deep.equal([])
      }),
      { numRuns: 80 },
    )
  })

  it('when a connection is renewed, no row is written', () => {
    const { exchange } = new Shell()
    const one = {
      connectionId: 'a',
      userId: userOf(1),
      timeoutSeconds: 5,
      keyName: 'default',
      fireInMs: 5_000,
    }
    const hold = () =>
      exchange.take(decideHoldConnections, { kind: 'hold_connections', connections: [one, one] })
    expect(hold().entries.length).to.equal(1)
    expect(hold().entries).to.deep.equal([])
    const stranger = { ...one, connectionId: 'b', userId: userOf(9) }
    const refused = exchange.take(decideHoldConnections, {
      kind: 'hold_connections',
      connections: [stranger],
    })
    expect([refused.entries, refused.answer]).to.deep.equal([[], { refused: ['b'] }])
  })
})
