/** Laws of the tables that follow the engine's state, on random journals of trading: matched, mined, rolled back, confirmed, voided and released. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { anySteps } from '../../domain/exchange/support/any-steps.ts'
import { commandsOf } from '../../domain/exchange/support/journals.ts'
import { WrittenTables } from './support/written-tables.ts'

/** Fates of a group before it is stored at last. */
const anyFate = fc.constantFrom(
  'stored',
  'stored',
  'undone',
  'refused',
  'refused with the next one',
  'restarted',
)

const anyGroup = fc.record({
  commands: fc.integer({ min: 1, max: 6 }),
  fate: anyFate,
  /** The tables lack it until the next group is stored. */
  isBehind: fc.boolean(),
})

const anyGroups = fc.array(anyGroup, {
  minLength: 80,
  maxLength: 80,
})

async function withTables(work: (tables: WrittenTables) => Promise<void>): Promise<void> {
  const tables = await WrittenTables.open()
  try {
    await work(tables)
  } finally {
    await tables.close()
  }
}

describe('tables that follow the engine', () => {
  it('when groups are stored, refused and decided again, or taken back, the tables equal the state and the journal has its rows', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, anyGroups, (steps, groups) =>
        withTables(async (tables) => {
          const commands = commandsOf(steps)
          let at = 0
          for (const { commands: count, fate, isBehind } of groups) {
            const rows: Entry[] = commands.slice(at, at + count).flat()
            const next = commands[at + count] ?? []
            at += count
            if (rows.length === 0) break
            if (fate === 'restarted') await tables.restart()
            const position = tables.applied.position()
            tables.apply(rows)
            if (fate !== 'stored' && fate !== 'restarted') {
              if (fate === 'undone') tables.applied.undoTo(position)
              else tables.refuse(rows, position, fate === 'refused' ? [] : next)
              tables.apply(rows)
            }
            if (isBehind) await tables.storeBehind(rows)
            else await tables.store(rows)
            if (!isBehind) expect(await tables.compare(), fate).to.deep.equal([])
          }
          await tables.catchUp()
          expect(await tables.compare()).to.deep.equal([])
          await tables.compareJournal({ hasBlocks: false })
        }),
      ),
      { numRuns: 6, endOnFailure: true },
    )
  }).timeout(300_000)
})
