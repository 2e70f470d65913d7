/** The exchange as a machine that applies rows and never decides. */
import type { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import { invariant } from '../../domain/invariant.ts'
import type { ExchangeAnswer, ExchangeCommand } from './commands.ts'
import type { Machine } from './machine.ts'

export const followingMachine = (applied: AppliedRows): Machine<ExchangeCommand, Entry, ExchangeAnswer> => ({
  execute: () => invariant(false, 'a follower decides nothing') as never,
  apply: (row) => applied.apply(row),
  position: () => applied.position(),
  undoTo: (position) => applied.undoTo(position),
  forget: (position) => applied.forget(position),
  digest: () => applied.digest(),
  time: () => applied.time(),
  restriction: () => null,
  unfinished: () => [],
})
