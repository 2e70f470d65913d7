/** When the engine gives itself commands: the switches of connections around a database that stores nothing for a time. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { apply, type Entry } from '../../../domain/exchange/apply.ts'
import { NO_MEMORY } from '../../../domain/exchange/decide/turn/memory.ts'
import { createState, type ExchangeState } from '../../../domain/exchange/state.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import type { Millis, Seq } from '../../../domain/units.ts'
import type { ExchangeCommand } from '../../../keeper/engine/commands.ts'
import { ConnectionDeadlines } from '../../../keeper/engine/connection-deadlines.ts'
import type { Reply } from '../../../keeper/engine/owner.ts'
import { Turns } from '../../../keeper/engine/turns.ts'
import { perpetual } from '../../support/markets.ts'

const GRACE_S = 5

describe('the own commands of an engine', () => {
  let now: number
  let timers: { at: number; work: () => void }[]
  let state: ExchangeState
  let deadlines: ConnectionDeadlines
  /** Answers that wait because nothing is stored; null while everything is. */
  let waiting: (() => void)[] | null
  let fired: string[]
  /** Only turns of this market wait, unless it is null. */
  let slowMarket: number | null
  let turns: { marketId: number; at: number }[]

  const answerTo = (command: ExchangeCommand): unknown => {
    if (command.kind === 'fire_switches') {
      fired.push(...command.due.map(({ connectionId }) => connectionId))
      return { cancelled: 0 }
    }
    if (command.kind === 'turn') turns.push({ marketId: command.turn.marketId, at: now })
    return command.kind === 'turn' ? { memory: NO_MEMORY, refused: [] } : { ok: true, value: null }
  }
  const submit = ({ command }: { readonly command: ExchangeCommand }): Promise<Reply<unknown>> => {
    const reply = { answer: answerTo(command) } as Reply<unknown>
    if (
      waiting === null ||
      (slowMarket !== null && !(command.kind === 'turn' && command.turn.marketId === slowMarket))
    )
      return Promise.resolve(reply)
    return new Promise((resolve) => waiting?.push(() => resolve(reply)))
  }
  async function pass(ms: number): Promise<void> {
    for (const end = now + ms; now < end; ) {
      now += 10
      for (const timer of timers.filter(({ at }) => at <= now)) {
        timers.splice(timers.indexOf(timer), 1)
        timer.work()
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  /** As an api does for a connection that lives. */
  const renew = (): void =>
    deadlines.held(
      [
        {
          connectionId: 'one',
          userId: 1 as never,
          timeoutSeconds: GRACE_S,
          keyName: null,
          fireInMs: GRACE_S * 1_000,
        },
      ],
      now as Millis,
    )

  beforeEach(() => {
    now = 1_000_000
    timers = []
    waiting = null
    fired = []
    turns = []
    slowMarket = null
    state = createState()
    apply(state, LISTED as Entry)
    state.connectionSwitches.put({
      connection_id: 'one',
      user_id: 1,
      timeout_seconds: GRACE_S,
      key_name: null,
    })
    deadlines = new ConnectionDeadlines()
    deadlines.restart(state, now as Millis)
    new Turns(
      {
        state,
        submit,
        deadlines,
        clock: { now: () => now as Millis, monotonic: () => now },
        timer: {
          after(ms, work) {
            const timer = { at: now + ms, work }
            timers.push(timer)
            return () => void timers.splice(timers.indexOf(timer), 1)
          },
          soon: (work) => void setImmediate(work),
        },
        logger: { debug() {}, info() {}, warn() {}, error() {} },
        onTurn: () => {},
      },
      { auctionMs: 200, fundingMs: 900_000 as Millis },
    )
  })

  const list = (marketIds: readonly number[]): void => {
    for (const marketId of marketIds)
      apply(state, {
        shard: `m${marketId}`,
        seq: 1,
        row: { kind: 'market_listed', spec: toStoredSpec({ ...perpetual, marketId: marketId as never }) },
      } as Entry)
  }
  const timesOf = (marketId: number): number[] =>
    turns.filter((turn) => turn.marketId === marketId).map(({ at }) => at)

  it('when markets are listed, four share the instants of their turns, and further ones have others', async () => {
    list([2, 3, 4, 5])
    await pass(2_000)
    turns = []
    await pass(1_000)
    const instants = [1, 2, 3, 4, 5].map((marketId) => timesOf(marketId).join())
    expect(new Set(turns.map(({ at }) => at))).to.have.property('size', 10)
    expect(instants.filter((times) => times === instants[0])).to.have.length(4)
  })

  it('when a turn takes longer than the interval, it is followed by one more at once, and the other markets keep their instants', async () => {
    list([2])
    await pass(1_000)
    waiting = []
    slowMarket = 1
    await pass(200)
    const [answer] = waiting
    turns = []
    await pass(1_000)
    expect([timesOf(1).length, timesOf(2).length]).to.deep.equal([0, 5])
    turns = []
    waiting = null
    answer?.()
    await new Promise((resolve) => setImmediate(resolve))
    const answeredAt = now
    await pass(1_000)
    expect(timesOf(1)[0]).to.equal(answeredAt)
    expect([timesOf(1).length, timesOf(2).length]).to.deep.equal([6, 5])
  })

  it('when a connection is not renewed, its switch fires once its time has passed', async () => {
    await pass(GRACE_S * 1_000 - 500)
    expect(fired).to.deep.equal([])
    await pass(1_000)
    expect(fired).to.deep.equal(['one'])
  })

  it('when nothing was stored for longer than the grace, the switch fires only if the connection is not renewed in a whole one after it', async () => {
    waiting = []
    await pass(20_000)
    expect(fired).to.deep.equal([])
    const late = waiting
    waiting = null
    for (const answer of late) answer()
    await pass(GRACE_S * 1_000 - 1_000)
    expect(fired).to.deep.equal([])
    renew()
    await pass(GRACE_S * 1_000 - 500)
    expect(fired).to.deep.equal([])
    await pass(1_000)
    expect(fired).to.deep.equal(['one'])
  })
})

const LISTED = {
  shard: 'm1',
  seq: 1 as Seq,
  row: { kind: 'market_listed', spec: toStoredSpec(perpetual) },
} as const
