/** Settings of a market as an operator's command makes them, in an engine of the test's process. */
import { decideOperator, type OperatorSetting } from '../../domain/exchange/decide/orders/operator.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { AdoptingEngine } from './adopting-engine.ts'

/** `at`: the engine's time unless it is given. */
export const applySetting = (
  engine: AdoptingEngine,
  marketId: MarketId,
  setting: OperatorSetting,
  at?: Millis,
): Promise<void> =>
  engine.decide((draft, inputs) => {
    const now = at ?? inputs.now
    const answer = decideOperator(draft, { ...inputs, now }, { kind: 'operator', marketId, setting })
    if (!('kind' in answer) || answer.kind !== 'done') throw new Error('the engine refuses the setting')
  })
