/** Today's queue of actions, whose every new action is compared with the decision of the engine on the same state and inputs. */
import { expect } from 'chai'
import type { SingleAction } from '../../../domain/actions/action.ts'
import { finalizeMarket } from '../../../domain/exchange/decide/turn/ending.ts'
import { type FundingCommand, fundingUpdate } from '../../../domain/exchange/decide/turn/funding.ts'
import { type Decider, decideOn } from '../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { ReportRules } from '../../../domain/prices/report.ts'
import type { MarketId, Millis } from '../../../domain/units.ts'
import { accept, type Verdict } from '../../../domain/verdict.ts'
import type { ActionQueue } from '../../../keeper/actions/ports.ts'
import type { FundingSnapshot, FundingStore } from '../../../keeper/funding/ports.ts'
import type { StoredState } from './stored-state.ts'

interface Compared {
  readonly stored: StoredState
  readonly actions: ActionQueue
  readonly now: () => Millis
}

/** Decides as the caller of the queue has: on what it has built. */
type Decide = (
  marketId: MarketId,
  built: SingleAction | null,
) => {
  readonly decider: Decider<null, Verdict<number | null, unknown>>
  readonly inputs: Partial<Inputs>
}

function comparedQueue({ stored, actions, now }: Compared, decide: Decide): ActionQueue {
  return {
    async enqueue(marketId, fence, headTime, build) {
      await stored.follow()
      let built: SingleAction | null = null
      const verdict = await actions.enqueue(marketId, fence, headTime, (end) => {
        built = build(end)
        return built
      })
      const action = built as SingleAction | null
      const { decider, inputs } = decide(marketId, action)
      const all: Inputs = {
        // The row has the time at which it was decided.
        now: action?.asOf ?? now(),
        report: () => null,
        session: () => null,
        reportRules: () => null,
        headTime,
        chainSeenAt: null,
        limits: { oracleMaxAgeMs: 0, chainMaxAgeMs: 0 },
        ...inputs,
      }
      const { entries, answer } = decideOn(stored.state, all, { decider, command: null })
      expect(answer).to.deep.equal(verdict)
      expect(JSON.parse(JSON.stringify(entries))).to.deep.equal(await stored.newRows(marketShard(marketId)))
      return verdict
    },
  }
}

interface FundingPorts extends Compared {
  readonly funding: FundingStore
}

/** Store and queue of the funding job. */
export function comparedFunding(
  ports: FundingPorts,
  terms: Pick<FundingCommand, 'interval'> & { readonly rules: ReportRules },
) {
  let last: FundingSnapshot | null = null
  const funding: FundingStore = {
    async snapshot(spec) {
      last = await ports.funding.snapshot(spec)
      return last
    },
  }
  const actions = comparedQueue(ports, (marketId) => ({
    decider: (draft, inputs) =>
      fundingUpdate(draft, inputs, { marketId, isBankPaused: false, interval: terms.interval }) as Verdict<
        number | null,
        unknown
      >,
    inputs: {
      report: () => last?.report ?? null,
      session: () => last?.session ?? null,
      reportRules: () => terms.rules,
    },
  }))
  return { funding, actions }
}

/** The queue of the endings' job. */
export const comparedEndings = (ports: Compared): ActionQueue =>
  comparedQueue(ports, (marketId, built) => ({
    decider: (draft, inputs) =>
      built === null
        ? accept(null)
        : (finalizeMarket(draft, inputs, { marketId, report: built.report }) as Verdict<
            number | null,
            unknown
          >),
    inputs: {},
  }))
