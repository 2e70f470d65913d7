/** When a member that is far behind the journal takes over. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import type { Machine } from '../../../keeper/engine/machine.ts'
import { startMember } from '../../../keeper/engine/member.ts'
import type { Group, Journal, Lease } from '../../../keeper/engine/ports.ts'
import { NO_TABLES } from './support/no-tables.ts'

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const LIFE_MS = 2_000
const DRIFT_MS = 200
const READ_MS = 500

class Rows implements Machine<string, string, string> {
  #applied = 0
  execute = () => ({ rows: [], answer: '', next: null })
  apply(): void {
    this.#applied++
  }
  position = (): number => this.#applied
  undoTo(): void {}
  forget(): void {}
  digest = (): string => `${this.#applied}`
  time = (): Millis => 0 as Millis
  restriction = (): null => null
  unfinished = (): readonly string[] => []
}

/** When the member takes the lease, in milliseconds since its start. It is `behind` reads behind an owner that never renews again. */
function takenAfter(behind: number): Promise<number> {
  let now = 0
  const clock = { now: () => now as Millis, monotonic: () => now }
  const groups = Array.from(
    { length: behind },
    (_, index): Group<string> => ({
      number: index + 1,
      token: 1,
      version: 1,
      rows: ['row'],
      before: `${index}`,
      digest: `${index + 1}`,
    }),
  )
  const journal: Journal<string> = {
    append: async () => true,
    read: async (after) => groups.slice(after, after + 1),
    async readWritten(after) {
      if (after < behind) now += READ_MS
      return groups.slice(after, after + 1)
    },
  }
  return new Promise((resolve) => {
    const lease: Lease = {
      read: async () => ({ token: 1, renewals: 7, isReleased: false }),
      async take() {
        resolve(now)
        void member.stop()
        return null
      },
      renew: async () => true,
      async release() {},
    }
    const member = startMember<string, string, string>(
      {
        machine: new Rows(),
        journal,
        lease,
        clock,
        timer: {
          after(ms, work) {
            const pending = setImmediate(() => {
              now += ms
              work()
            })
            return () => clearImmediate(pending)
          },
          soon: (work) => void setImmediate(work),
        },
        logger: SILENT,
        tables: NO_TABLES,
        isReadBack: () => false,
        observer: { waited() {}, decided() {}, stored() {}, written() {} },
        onEnd() {},
        onOwner() {},
      },
      {
        turnMs: 5,
        maxGroup: 1,
        followMs: 50,
        lifeMs: LIFE_MS,
        driftMs: DRIFT_MS,
      },
      { head: 0 },
    )
  })
}

describe('a member behind the journal of an owner that has stopped', () => {
  it('when it is not behind, it takes the lease after its life and the drift', async () => {
    expect(await takenAfter(0)).to.be.within(LIFE_MS + DRIFT_MS, LIFE_MS + DRIFT_MS + 100)
  })

  it('when it catches up for longer than the life of the lease, it takes the lease as soon as it has caught up', async () => {
    expect(await takenAfter(10)).to.equal(10 * READ_MS)
  })
})
