/** `npm run fuzz:requests`: sends generated requests, or messages of the live feed, to a real api and exits with 1 if one is executed, fails inside, or hangs. */
import { argumentsOf, oneOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { fuzzLive } from './api/fuzz/live.ts'
import { AREAS, fuzzRequests } from './api/fuzz/run.ts'

const { area, count, seed } = argumentsOf({
  command: 'npm run fuzz:requests --',
  flags: {
    area: withDefault(oneOf([...AREAS, 'live'], 'the operations'), 'accounts'),
    count: withDefault(wholeNumber('requests', { least: 1 }), 100_000),
    seed: withDefault(wholeNumber('of the generator'), 1),
  },
})

const started = performance.now()
const { sent, answers, operations, problems } = await (area === 'live'
  ? fuzzLive(count, seed)
  : fuzzRequests(count, seed, area))
const seconds = ((performance.now() - started) / 1000).toFixed(1)
for (const [answer, times] of [...answers].sort((a, b) => b[1] - a[1]))
  console.log(`${String(times).padStart(8)}  ${answer}`)
for (const problem of problems) console.error(problem)
console.log(
  `seed ${seed}: ${sent} requests to ${operations} operations (${area}) in ${seconds} s, ${problems.length} problems`,
)
process.exit(problems.length === 0 ? 0 : 1)
