/** How much processor time the limits of a client allow. */

import { readConfig } from '../../../api/config.ts'
import type { Bucket } from '../../../api/http/buckets.ts'
import { shareOf, UNITS_ON_CHAIN } from '../../../api/http/cost-budget.ts'
import { apiEnv } from './exchange-fixture.ts'

/** Processor time of a bare recovery on the machine of the reference, microseconds. */
const REFERENCE_US = 50
/** The share of one core that a client may take. */
const SHARE = 0.25

const withoutLimits = apiEnv('postgres://user@localhost/database')

/** The configuration with every limit by default. */
export const DEFAULTS = readConfig(
  Object.fromEntries(
    Object.entries(withoutLimits).map(([name, value]) => [
      name,
      name.startsWith('RATE_LIMIT') || name === 'SIGNATURE_EXPLANATIONS' ? '' : value,
    ]),
  ),
)
export const LIMITS = DEFAULTS.limits

/** Recoveries that one request of the limit may take. */
export const budgetOf = (bucket: Bucket): number =>
  (shareOf(bucket) * SHARE * 1e6) / LIMITS[bucket] / REFERENCE_US

/** Recoveries that one request may take which is limited by what it costs on the chain. A second has a million units. */
export const BUDGET_ON_CHAIN = (SHARE * UNITS_ON_CHAIN) / REFERENCE_US
