/** `npm run bench:gas`: what a settled order costs, as a table and as one line of JSON. */

import { gasTable, MOVES, SALTS, SIZES } from '../test/support/gas.ts'
import { GAS_SCENARIOS } from '../test/support/gas-scenarios.ts'

const table = await gasTable()
console.log(`gas per order       ${MOVES.map((move) => move.padStart(10)).join('')}`)
for (const mode of SALTS) {
  for (const size of SIZES) {
    const cells = MOVES.map((move) => String(table[`${mode} ${size} ${move}`]).padStart(10)).join('')
    console.log(`${mode.padEnd(12)}${String(size).padStart(4)}    ${cells}`)
  }
}
for (const { name } of GAS_SCENARIOS) console.log(`${name.padEnd(46)}${String(table[name]).padStart(8)}`)
console.log(JSON.stringify({ bench: 'gas', unit: 'gas per order', ...table }))
