/** The simulated journal and lease behave as those on Postgres. */
import { describe } from 'mocha'
import { AppendUnknown, ContentRejected, JournalUnavailable } from '../../../keeper/engine/ports.ts'
import { SimulatedDatabase } from '../../../simulate/exchange/database.ts'
import { Host } from '../../../simulate/exchange/host.ts'
import { Scheduler } from '../../../simulate/exchange/scheduler.ts'
import { randomOf } from '../../../simulate/random.ts'
import { type JournalFixture, journalCases } from '../../keeper/engine/journal-cases.ts'

describe('the simulated journal of the engine', () => {
  journalCases(async (): Promise<JournalFixture> => {
    const scheduler = new Scheduler()
    const clock = { offset: 0 }
    const errors = { AppendUnknown, ContentRejected, JournalUnavailable }
    const database = new SimulatedDatabase<unknown>(
      { scheduler, random: randomOf(1), clock, errors },
      (row) => (row as { poison?: true }).poison === true,
    )
    const host = new Host('engine', scheduler, clock, 0)
    const until = async <Value>(work: Promise<Value>): Promise<Value> => {
      await scheduler.runUntil(scheduler.now + 100)
      return work
    }
    return {
      journal: database.journalOf(host),
      lease: database.leaseOf(host),
      until,
      poison: { poison: true },
    }
  })
})
