/** Applies one fact of a block: each kind goes to the function of its subject. */
import { isSingleFact, moves, type PositionMoveFact, type SingleFact } from '../../../chain/fact-accounts.ts'
import type { LoggedFact, PartMined, UndecodableLog } from '../../../chain/facts.ts'
import { NO_EVENTS } from '../../../settlement/receipt.ts'
import { reconcile } from '../../../settlement/reconcile.ts'
import { CHAIN } from '../../apply.ts'
import { executeForward, invalidateNonces, moveLedger, pauseBank, updateSessionKey } from './accounts.ts'
import { failUndecodable } from './adjustments.ts'
import { cancelSalts } from './cancel-orders.ts'
import { blockTime, type FactContext, type WantedPositions } from './fact-context.ts'
import { applySingle, movePositions } from './moves.ts'
import { settleMinedPart } from './parts.ts'
import { changeBackstop, changeEnding, changeTerms, fixHaircut, isBackstopChange } from './terms.ts'

/** Null once the fact is applied; otherwise the fact has had no effect yet. */
export function applyFact(context: FactContext, { fact, log }: LoggedFact): WantedPositions | null {
  if (fact.kind === 'part_mined') return settleMinedPart(context, fact, log)
  if (moves(fact)) return movePositions(context, fact, log)
  if (isSingleFact(fact)) applySingle(context, fact, log)
  else
    (HANDLERS[fact.kind] as (context: FactContext, fact: PlainFact, log: LoggedFact['log']) => void)(
      context,
      fact,
      log,
    )
  return null
}

type PlainFact = Exclude<LoggedFact['fact'], PartMined | PositionMoveFact | SingleFact>

type Handlers = {
  readonly [Kind in PlainFact['kind']]: (
    context: FactContext,
    fact: Extract<PlainFact, { readonly kind: Kind }>,
    log: LoggedFact['log'],
  ) => void
}

const HANDLERS: Handlers = {
  ledger_moved: moveLedger,
  salts_cancelled: (context, fact) => cancelSalts(context.draft, fact, blockTime(context)),
  session_key_updated: updateSessionKey,
  forward_request_executed: executeForward,
  margin_nonces_invalidated: invalidateNonces,
  ending_changed: changeEnding,
  haircut_fixed: fixHaircut,
  terms_changed: (context, fact, log) =>
    isBackstopChange(fact) ? changeBackstop(context, fact, log) : changeTerms(context, fact, log),
  bank_pause_changed: pauseBank,
  undecodable: noteUndecodable,
  ignored: () => {},
}

function noteUndecodable(
  context: FactContext,
  { spec, problem }: UndecodableLog,
  { logIndex, txHash }: LoggedFact['log'],
): void {
  const verdict = reconcile({ ...NO_EVENTS, undecodable: problem }, null)
  if (spec === null || verdict.ok) return
  const { marketId } = spec
  context.mismatches.push({ ...verdict.refusal, marketId, txHash, batchId: null, part: null })
  if (!failUndecodable(context, { marketId, txHash }, verdict.refusal)) return
  context.draft.write(CHAIN, {
    kind: 'log_undecodable',
    rollback: false,
    market_id: marketId,
    block: context.block.number,
    tx_hash: txHash,
    log_index: logIndex,
  })
}
