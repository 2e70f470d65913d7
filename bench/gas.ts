/**
 * `npm run gas`: prints the gas per settled order and of every other call, in the receipt and as 4326 and 6343 charge it: as
 * the tables of docs/audit/gas.md and as one JSON line.
 */

import { argumentsOf } from '../service/command-line.ts'
import { gasTable } from '../test/contracts/support/gas.ts'
import { gasReport } from '../test/contracts/support/gas-report.ts'

argumentsOf({ command: 'npm run gas', flags: {} })
const table = await gasTable()
console.log(gasReport(table, true).join('\n'))
console.log(JSON.stringify({ bench: 'gas', unit: 'gas', ...table }))
