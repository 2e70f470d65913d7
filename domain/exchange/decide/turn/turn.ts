/** A market's turn: its mark, the steps of its liquidations, and its auction. */

import { ATTEMPTS } from '../../../auction/auction-turn.ts'
import type { MatchRefusal } from '../../../auction/batch.ts'
import type { ClearingInputs } from '../../../auction/clearing.ts'
import type { MarketId } from '../../../units.ts'
import { Continued, type Decider } from '../../decide.ts'
import { attemptAuction } from './auction.ts'
import { TurnContext } from './context.ts'
import { type HashOrder, updateLiquidations } from './liquidation.ts'
import { updateMark } from './mark.ts'
import type { TurnMemory } from './memory.ts'

export type TurnStage = 'mark' | 'liquidations' | 'auction'

export interface TurnCommand {
  readonly marketId: MarketId
  /** Memory from the market's last answer; `NO_MEMORY` for a new owner. */
  readonly memory: TurnMemory
  /** Stage of the turn; a turn begins with the mark. */
  readonly stage: TurnStage
  /** Number of earlier auction attempts in this turn. */
  readonly attempts: number
}

/** Result of one step of a turn. */
export interface TurnAnswer {
  /** Memory for the market's next turn. If the step's rows are not stored, the earlier memory stays valid. */
  readonly memory: TurnMemory
  /** Number of orders that the mark triggered. */
  readonly triggered: number
  /** Failure reasons of liquidations, as in their rows. */
  readonly failures: readonly string[]
  /** Whether actions wait to be sent for settlement. */
  readonly hasQueued: boolean
  readonly batchId: number | null
  /** Inputs for a recomputation of the batch. They are stored in the batch proof instead of rows. */
  readonly inputs: ClearingInputs | null
  readonly refused: readonly MatchRefusal[]
}

export const firstStep = (marketId: MarketId, memory: TurnMemory): TurnCommand => ({
  marketId,
  memory,
  stage: 'mark',
  attempts: 0,
})

const NOTHING = { triggered: 0, failures: [], hasQueued: false, batchId: null, inputs: null, refused: [] }

/**
 * Decides turns. A step that writes, or an auction attempt to repeat, ends the decision, and the next command continues
 * the turn. This keeps each decision within the order bound.
 */
export const marketTurn =
  (hashOrder: HashOrder): Decider<TurnCommand, TurnAnswer, TurnCommand> =>
  (draft, inputs, command) => {
    const steps = { mark: stepMark, liquidations: stepLiquidations(hashOrder), auction: stepAuction }
    const context = new TurnContext(draft, inputs, command.marketId)
    let next: TurnCommand = command
    for (;;) {
      const step = steps[next.stage](context, next)
      if (!(step instanceof Continued) || draft.hasRows || step.next.stage === next.stage) return step
      next = step.next
    }
  }

type Step = (context: TurnContext, command: TurnCommand) => ReturnType<ReturnType<typeof marketTurn>>

const stepMark: Step = (context, command) => {
  const { memory, triggered } = updateMark(context, command.memory)
  return new Continued({ ...NOTHING, memory, triggered }, { ...command, memory, stage: 'liquidations' })
}

const stepLiquidations =
  (hashOrder: HashOrder): Step =>
  (context, command) => {
    const { memory, failures, actions } = updateLiquidations(context, command.memory, hashOrder)
    const answer = { ...NOTHING, memory, failures, hasQueued: actions > 0 }
    return new Continued(answer, { ...command, memory, stage: 'auction' })
  }

const stepAuction: Step = (context, command) => {
  const attempt = attemptAuction(context, command.memory)
  const { memory, batchId, inputs, refused, isRepeated } = attempt
  const answer = { ...NOTHING, memory, batchId, inputs, refused, hasQueued: batchId !== null }
  const attempts = command.attempts + 1
  return isRepeated && attempts < ATTEMPTS ? new Continued(answer, { ...command, memory, attempts }) : answer
}
