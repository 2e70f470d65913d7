/** The laws of a state, for journals of random trading in two markets. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { AppliedRows } from '../../../domain/exchange/applied-rows.ts'
import { apply, applyAll, type Entry } from '../../../domain/exchange/apply.ts'
import { load, serialize } from '../../../domain/exchange/checkpoint.ts'
import { canonicalJson } from '../../../domain/exchange/document-table.ts'
import { violations } from '../../../domain/exchange/laws.ts'
import { createState, digestOf, type ExchangeState, tablesOf } from '../../../domain/exchange/state.ts'
import type { OrderRow } from '../../../domain/exchange/tables/orders.ts'
import { toHex } from '../../../domain/hex.ts'
import type { MarketId, Millis, UserId } from '../../../domain/units.ts'
import { binary, perpetual } from '../../support/markets.ts'
import { anySteps } from './support/any-steps.ts'
import { commandsOf } from './support/journals.ts'

/** Documents may have their fields in any order. */
const textOf = (row: object): string =>
  canonicalJson(
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? `${value}` : value]),
    ),
  )

/** All rows and all indexes, in an order that does not depend on history. */
function contentOf(state: ExchangeState) {
  const books = [perpetual, binary].map(({ marketId }) => {
    const { book, waiting } = state.books.of(marketId as MarketId)
    const levels = [...book.levels('LONG'), ...book.levels('SHORT')]
    // A level changes in place.
    return { orders: book.orders(), waiting: waiting.orders(), levels: structuredClone(levels) }
  })
  const tables = tablesOf(state).map((table) => {
    const rows = [...(table as unknown as { rows(): Iterable<object> }).rows()].map(textOf)
    return { name: table.name, rows: rows.sort() }
  })
  const queues = [perpetual, binary].map(({ marketId }) => [...state.queues.pending(marketId)])
  const ended = [perpetual, binary].map(({ marketId }) => state.ended.upTo(marketId, Number.MAX_SAFE_INTEGER))
  const users = [1, 2, 3, 4] as UserId[]
  const exposures = [perpetual, binary].map(({ marketId }) =>
    users.map((user) => state.exposures.of(marketId, user)),
  )
  const found = [...state.signatures.rows()].map(({ marketId, accepted, hash }) => {
    const { account, salt } = state.orders.need(marketId, accepted)
    const { seq } = state.orderIndex.withSalt(marketId, account, salt) as OrderRow
    return `${marketId}-${accepted} ${seq} ${state.orderIndex.withHash(hash) === undefined}`
  })
  const ofUsers = users.map((user) => ({
    live: [perpetual, binary].map(({ marketId }) => state.orderIndex.liveOf(marketId, user)),
    positions: state.positionIndex.of(user).sort((a, b) => a.marketId - b.marketId),
  }))
  const switches = state.switchIndex.due(Number.MAX_SAFE_INTEGER as Millis)
  const next = state.newestUser.next()
  const indexes = { found: found.sort(), ofUsers, switches, next }
  return { books, tables, queues, ended, exposures, indexes, digest: toHex(digestOf(state)) }
}

function folded(commands: readonly (readonly Entry[])[]): ExchangeState {
  const state = createState()
  for (const command of commands) applyAll(state, command)
  return state
}

describe('the state of the exchange', () => {
  it('when any trading is applied, reservations, fills and positions add up after each command', () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        const state = createState()
        for (const command of commandsOf(steps)) {
          applyAll(state, command)
          expect(violations(state)).to.deep.equal([])
        }
      }),
      { numRuns: 60 },
    )
  })

  it('when commands are rolled back, rows, books, indexes and digest equal the state before these commands', () => {
    fc.assert(
      fc.property(anySteps, fc.nat(100), (steps, percent) => {
        const commands = commandsOf(steps)
        const kept = Math.floor((commands.length * percent) / 100)
        const state = folded(commands.slice(0, kept))
        const before = contentOf(state)
        const { mark } = state.core.undo
        for (const command of commands.slice(kept)) applyAll(state, command)
        const after = contentOf(state)
        state.core.undo.undoTo(mark)
        expect(contentOf(state)).to.deep.equal(before)
        for (const command of commands.slice(kept)) applyAll(state, command)
        expect(contentOf(state)).to.deep.equal(after)
      }),
      { numRuns: 60 },
    )
  })

  it('when an engine applies, takes back and forgets rows by position, the state is that of the rows that stay', () => {
    const moves = fc.array(fc.record({ rows: fc.nat(9), back: fc.nat(9), forget: fc.nat(9) }), {
      maxLength: 20,
    })
    fc.assert(
      fc.property(anySteps, moves, (steps, taken) => {
        const entries = commandsOf(steps).flat()
        const applied = new AppliedRows(createState())
        let forgotten = 0
        for (const { rows, back, forget } of taken) {
          for (const entry of entries.slice(applied.position(), applied.position() + rows))
            applied.apply(entry)
          applied.undoTo(Math.max(forgotten, applied.position() - back))
          forgotten = Math.max(forgotten, applied.position() - forget)
          applied.forget(forgotten)
        }
        const direct = new AppliedRows(createState())
        for (const entry of entries.slice(0, applied.position())) direct.apply(entry)
        expect(contentOf(applied.state)).to.deep.equal(contentOf(direct.state))
        expect([applied.digest(), applied.time()]).to.deep.equal([direct.digest(), direct.time()])
        expect(() => applied.undoTo(applied.position() + 1)).to.throw('ahead')
      }),
      { numRuns: 60 },
    )
  })

  it('when the last row of a command is invalid, none of its rows is applied', () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        const commands = commandsOf(steps)
        const state = folded(commands.slice(0, -1))
        const before = contentOf(state)
        const last = commands.at(-1) as readonly Entry[]
        const wrong = { ...(last.at(-1) as Entry), row: { kind: 'of_another_version' } as never }
        expect(() => applyAll(state, [...last.slice(0, -1), wrong])).to.throw('known kind')
        expect(contentOf(state)).to.deep.equal(before)
      }),
      { numRuns: 30 },
    )
  })

  it('when a state is written and loaded, it is equal and continues equally', () => {
    fc.assert(
      fc.property(anySteps, fc.nat(100), (steps, percent) => {
        const commands = commandsOf(steps)
        const kept = Math.floor((commands.length * percent) / 100)
        const state = folded(commands.slice(0, kept))
        const loaded = load(serialize(state))
        expect(contentOf(loaded)).to.deep.equal(contentOf(state))
        for (const command of commands.slice(kept)) {
          applyAll(state, command)
          applyAll(loaded, command)
        }
        expect(contentOf(loaded)).to.deep.equal(contentOf(state))
      }),
      { numRuns: 60 },
    )
  })

  it('when the rows of the shards come in another interleaving, the state is equal', () => {
    fc.assert(
      fc.property(anySteps, fc.infiniteStream(fc.nat()), (steps, choices) => {
        const entries = commandsOf(steps).flat()
        const state = createState()
        for (const entry of entries) apply(state, entry)
        // Accounts exist before markets name them.
        const isFirst = ({ shard }: Entry): boolean => shard === 'accounts'
        const other = createState()
        for (const entry of entries.filter(isFirst)) apply(other, entry)
        const shards = [
          ...Map.groupBy(
            entries.filter((entry) => !isFirst(entry)),
            ({ shard }) => shard,
          ).values(),
        ]
        while (shards.some(({ length }) => length > 0)) {
          const waiting = shards.filter(({ length }) => length > 0)
          apply(other, waiting[(choices.next().value as number) % waiting.length]?.shift() as Entry)
        }
        expect(contentOf(other)).to.deep.equal(contentOf(state))
      }),
      { numRuns: 60 },
    )
  })

  it('given a row that is not the next one of its shard, it is rejected and nothing has changed', () => {
    const [listing = []] = commandsOf([])
    const state = folded([listing])
    const before = contentOf(state)
    const again = listing[0] as Entry
    for (const seq of [again.seq, again.seq + 2])
      expect(() => applyAll(state, [{ ...again, seq }])).to.throw('next sequence')
    expect(contentOf(state)).to.deep.equal(before)
  })

  it('given a row of a later version, it is rejected', () => {
    const [listing = []] = commandsOf([])
    const [first] = listing
    expect(() =>
      applyAll(createState(), [{ ...(first as Entry), row: { ...(first as Entry).row, v: 2 } }]),
    ).to.throw('version 1')
  })
})
