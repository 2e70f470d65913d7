/** The ledger as a scenario of the engine's simulation: all of the shell, with the fewest rules. */
import type { Scenario } from '../scenario.ts'
import { checkLaws } from './laws.ts'
import { Ledger, type LedgerAnswer, type LedgerCommand, type LedgerRow } from './ledger.ts'
import { Traders } from './traders.ts'

export function ledgerScenario(): Scenario<LedgerCommand, LedgerRow, LedgerAnswer> {
  let traders: Traders | null = null
  return {
    newMachine: () => new Ledger(),
    isPoison: (row) => row.isPoison === true,
    accountOf: ({ account }) => account,
    clients(scheduler, random, send) {
      traders = new Traders(scheduler, random, send)
      return traders
    },
    check: (observed) => checkLaws(observed, (command) => traders?.knownRows(command) ?? 0),
  }
}
