/** What a command would be decided on: a snapshot without locks, and nothing is written. */
import type pg from 'pg'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { AdmissionInput } from '../../domain/orders/admission.ts'
import type { Clock } from '../ports.ts'
import type { Command, Item } from './command.ts'
import { GroupChanges } from './group-changes.ts'
import { openGroup } from './group-state.ts'
import { type Ages, admissionInput } from './place.ts'
import { single } from './submit-single.ts'

export interface DryRunPorts {
  /** Connections of its own: whoever only looks must not hold up a placement. */
  readonly trials: pg.Pool
  readonly clock: Clock
}

export interface DryRunOptions extends Ages {
  readonly chainId: number
}

export interface DryRunCommand {
  readonly userId: number
  readonly spec: MarketSpec
  readonly items: readonly Item[]
}

export async function dryRun<Seen>(
  { trials, clock }: DryRunPorts,
  { chainId }: DryRunOptions,
  { userId, spec, items }: DryRunCommand,
  see: (draft: GroupChanges) => Seen,
): Promise<Seen> {
  const command: Command = {
    ...{ kind: 'place', userId, markets: [spec], items, ...single(() => null) },
    ...{ arrivedAt: clock.now(), resolve: () => {}, reject: () => {} },
  }
  const scope = { chainId, marketIds: [spec.marketId], isSpanning: false }
  const client = await trials.connect()
  let broken: Error | undefined
  try {
    return see(new GroupChanges(await openGroup(client, scope, [command], 'look')))
  } finally {
    await client.query('rollback').catch((error: Error) => {
      broken = error
    })
    client.release(broken)
  }
}

/** What a placement of the account would be admitted against at this moment. */
export const dryRunAdmission = (
  ports: DryRunPorts,
  options: DryRunOptions,
  spec: MarketSpec,
  userId: number,
): Promise<AdmissionInput> =>
  dryRun(ports, options, { userId, spec, items: [] }, (draft) =>
    admissionInput(spec, userId, draft, ports.clock.now(), options),
  )
