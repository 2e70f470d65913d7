/**
 * How fast orders are taken in. First the signature path against bare public-key recovery, on one core; then placements over REST
 * against a freshly started api process and Postgres, durable, with the load generator in a process of its own. Prints tables and one
 * JSON line. No keeper and no indexer run: what is measured is the intake.
 */

import { measurePlacements } from './intake/placements.ts'
import { measureSignatures } from './intake/signatures.ts'

const signatures = measureSignatures()
console.table({
  'bare recovery': { 'per second and core': Math.round(signatures.bare), share: 1 },
  'whole check of an order': {
    'per second and core': Math.round(signatures.verified),
    share: Number(signatures.share.toFixed(3)),
  },
})
const placements = await measurePlacements()
console.table(placements)
console.log(JSON.stringify({ bench: 'intake', signatures, placements }))
