// KafkaJS against a broker: node main.js BOOTSTRAP. Prints "name ok" or "name FAIL reason" lines.
process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const { Kafka, CompressionTypes, ConfigResourceTypes, logLevel } = require('kafkajs')
const crypto = require('crypto')

const kafka = new Kafka({ clientId: 'compat', brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
const unique = (p) => `${p}-${crypto.randomBytes(4).toString('hex')}`
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
let failed = 0

const check = (ok, why) => { if (!ok) throw new Error(why) }

async function test(name, body) {
  let timer
  const late = new Promise((_, no) => { timer = setTimeout(() => no(new Error('no end in 40 s')), 40000) })
  try {
    await Promise.race([body(), late])
    console.log(`${name} ok`)
  } catch (error) {
    failed = 1
    console.log(`${name} FAIL ${String(error.message).split('\n')[0]}`)
  }
  clearTimeout(timer)
}

async function create(partitions = 1) {
  const admin = kafka.admin()
  await admin.connect()
  const topic = unique('js')
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions }], waitForLeaders: true })
  await admin.disconnect()
  return topic
}

async function send(topic, messages, { compression, ...options } = {}) {
  const producer = kafka.producer(options)
  await producer.connect()
  await producer.send({ topic, messages, compression })
  await producer.disconnect()
}

async function read(topic, count, groupId = unique('g')) {
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const got = []
  let done
  const all = new Promise((yes) => { done = yes })
  await consumer.run({
    eachMessage: async ({ message }) => { got.push(message); if (got.length >= count) done() },
  })
  await all
  await consumer.disconnect()
  return got
}

async function main() {
  await test('metadata', async () => {
    const admin = kafka.admin()
    await admin.connect()
    const cluster = await admin.describeCluster()
    await admin.disconnect()
    check(cluster.brokers.length > 0 && cluster.clusterId, 'no brokers')
  })
  await test('create topic', async () => { await create(3) })
  for (const [name, compression] of [['none', CompressionTypes.None], ['gzip', CompressionTypes.GZIP]]) {
    await test(`codec ${name}`, async () => {
      const topic = await create()
      const values = [...Array(50).keys()].map((n) => `${n}-${'x'.repeat(n)}`)
      await send(topic, values.map((value) => ({ value })), { compression })
      const got = (await read(topic, 50)).map((m) => m.value.toString())
      check(JSON.stringify(got) === JSON.stringify(values), 'values differ')
    })
  }
  await test('keys headers nulls timestamps', async () => {
    const topic = await create()
    // Retention takes what is older than a week.
    const timestamp = String(Date.now() - 3600000)
    await send(topic, [{ key: 'k', value: null, headers: { h: 'v' }, timestamp }])
    const [m] = await read(topic, 1)
    check(m.key.toString() === 'k' && m.value === null, 'key or value')
    check(m.headers.h.toString() === 'v', 'headers')
    check(m.timestamp === timestamp, `timestamp ${m.timestamp}`)
  })
  await test('900 KB record', async () => {
    const topic = await create()
    const value = crypto.randomBytes(900000)
    await send(topic, [{ value }])
    check((await read(topic, 1))[0].value.equals(value), 'differs')
  })
  await test('idempotence', async () => {
    const topic = await create()
    const messages = [...Array(100).keys()].map((n) => ({ value: String(n) }))
    await send(topic, messages, { idempotent: true, maxInFlightRequests: 1 })
    const got = (await read(topic, 100)).map((m) => m.value.toString()).join()
    check(got === [...Array(100).keys()].join(), 'order')
  })
  await test('commit and resume', async () => {
    const topic = await create()
    const group = unique('g')
    await send(topic, ['a', 'b'].map((value) => ({ value })))
    await read(topic, 2, group)
    await send(topic, [{ value: 'c' }])
    check((await read(topic, 1, group))[0].value.toString() === 'c', 'read again')
  })
  await test('group with a rebalance', async () => {
    const topic = await create(4)
    const groupId = unique('g')
    const shares = new Map()
    const join = async (name) => {
      const one = kafka.consumer({ groupId, maxWaitTimeInMs: 100, heartbeatInterval: 300 })
      one.on(one.events.GROUP_JOIN, (e) => {
        shares.set(name, (e.payload.memberAssignment[topic] || []).length)
      })
      await one.connect()
      await one.subscribe({ topics: [topic], fromBeginning: true })
      await one.run({ eachMessage: async () => {} })
      return one
    }
    const until = async (want) => {
      for (let n = 0; n < 300; n++) {
        if ([...shares.values()].join() === want) return
        await sleep(100)
      }
      throw new Error(`shares ${[...shares.values()].join()}, not ${want}`)
    }
    const first = await join('first')
    await until('4')
    const second = await join('second')
    await until('2,2')
    await second.disconnect()
    shares.delete('second')
    await until('4')
    await first.disconnect()
  })
  await test('describe', async () => {
    const topic = await create()
    const admin = kafka.admin()
    await admin.connect()
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }]
    const configs = await admin.describeConfigs({ resources })
    check(configs.resources[0].configEntries.some((e) => e.configName === 'retention.ms'), 'configs')
    const group = unique('g')
    await admin.setOffsets({ groupId: group, topic, partitions: [{ partition: 0, offset: '0' }] })
    const groups = await admin.describeGroups([group])
    check(groups.groups[0].state === 'Empty', `state ${groups.groups[0].state}`)
    await admin.deleteTopics({ topics: [topic] })
    await admin.disconnect()
  })
  process.exit(failed)
}

main()
