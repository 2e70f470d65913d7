/** Decides a command on a snapshot, without locks and without writing anything. */
import type pg from 'pg'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { AdmissionInput } from '../../domain/orders/admission.ts'
import type { Clock } from '../../service/clock.ts'
import type { Command, Item } from './command.ts'
import { GroupChanges } from './group-changes.ts'
import { openGroup } from './open-group.ts'
import { admissionInput, type FreshnessLimits } from './place.ts'
import { singleItem } from './submit-single.ts'

export interface DryRunPorts {
  /** Connections of its own, so that dry runs do not delay placements. */
  readonly dryRunPool: pg.Pool
  readonly clock: Clock
}

export interface DryRunOptions extends FreshnessLimits {
  readonly chainId: number
}

export interface DryRunCommand {
  readonly userId: number
  readonly spec: MarketSpec
  readonly items: readonly Item[]
}

export async function dryRun<Result>(
  { dryRunPool, clock }: DryRunPorts,
  { chainId }: DryRunOptions,
  { userId, spec, items }: DryRunCommand,
  read: (changes: GroupChanges) => Result,
): Promise<Result> {
  const command: Command = {
    ...{ kind: 'place', userId, markets: [spec], items, ...singleItem(() => null) },
    ...{ arrivedAt: clock.now(), resolve: () => {}, reject: () => {} },
  }
  const scope = { chainId, marketIds: [spec.marketId], isSpanning: false }
  const client = await dryRunPool.connect()
  let broken: Error | undefined
  try {
    return read(new GroupChanges(await openGroup(client, scope, [command], 'dry-run')))
  } finally {
    await client.query('rollback').catch((error: Error) => {
      broken = error
    })
    client.release(broken)
  }
}

/** The input that admission would have for a placement of the account now. */
export const dryRunAdmission = (
  ports: DryRunPorts,
  options: DryRunOptions,
  spec: MarketSpec,
  userId: number,
): Promise<AdmissionInput> =>
  dryRun(ports, options, { userId, spec, items: [] }, (changes) =>
    admissionInput(spec, userId, changes, ports.clock.now(), options),
  )
