// Sarama against a broker: sarama BOOTSTRAP. Prints "name ok" or "name FAIL reason" lines.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"compat/check"

	"github.com/IBM/sarama"
)

var seeds []string

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	c.Metadata.AllowAutoTopicCreation = false
	return c
}

func admin(body func(sarama.ClusterAdmin) error) error {
	a, err := sarama.NewClusterAdmin(seeds, config())
	if err != nil {
		return err
	}
	defer a.Close()
	return body(a)
}

func create(partitions int32) (string, error) {
	topic := check.Unique("sarama")
	return topic, admin(func(a sarama.ClusterAdmin) error {
		detail := sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}
		return a.CreateTopic(topic, &detail, false)
	})
}

func send(c *sarama.Config, messages ...*sarama.ProducerMessage) error {
	p, err := sarama.NewSyncProducer(seeds, c)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.SendMessages(messages)
}

func read(ctx context.Context, topic string, count int) ([]*sarama.ConsumerMessage, error) {
	c, err := sarama.NewConsumer(seeds, config())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	part, err := c.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer part.Close()
	var got []*sarama.ConsumerMessage
	for len(got) < count {
		select {
		case one := <-part.Messages():
			got = append(got, one)
		case <-ctx.Done():
			return got, fmt.Errorf("%d of %d records came", len(got), count)
		}
	}
	return got, nil
}

func text(n int) []byte {
	return append([]byte(fmt.Sprint(n, "-")), bytes.Repeat([]byte("x"), n)...)
}

// There and back: count records with these settings.
func round(ctx context.Context, c *sarama.Config, count int) error {
	topic, err := create(1)
	if err != nil {
		return err
	}
	var all []*sarama.ProducerMessage
	for n := range count {
		one := &sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(text(n))}
		all = append(all, one)
	}
	if err := send(c, all...); err != nil {
		return err
	}
	got, err := read(ctx, topic, count)
	for n, one := range got {
		if !bytes.Equal(one.Value, text(n)) {
			return fmt.Errorf("record %d differs", n)
		}
	}
	return err
}

func codec(name string, codec sarama.CompressionCodec) {
	check.Test("codec "+name, func(ctx context.Context) error {
		c := config()
		c.Producer.Compression = codec
		return round(ctx, c, 200)
	})
}

func fields(ctx context.Context) error {
	topic, err := create(1)
	if err != nil {
		return err
	}
	// Retention takes what is older than a week.
	at := time.UnixMilli(time.Now().UnixMilli()).Add(-time.Hour)
	full := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder("k"), Timestamp: at,
		Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte("v")}, {Key: []byte("n")}}}
	bare := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("v"), Timestamp: at}
	if err := send(config(), full, bare); err != nil {
		return err
	}
	got, err := read(ctx, topic, 2)
	if err != nil {
		return err
	}
	one, two := got[0], got[1]
	if string(one.Key) != "k" || one.Value != nil || !one.Timestamp.Equal(at) ||
		len(one.Headers) != 2 || string(one.Headers[0].Value) != "v" {
		return fmt.Errorf("came back as %+v", one)
	}
	if two.Key != nil || string(two.Value) != "v" || len(two.Headers) != 0 {
		return fmt.Errorf("came back as %+v", two)
	}
	return nil
}

func large(ctx context.Context) error {
	topic, err := create(1)
	if err != nil {
		return err
	}
	value := check.Random(900_000)
	one := &sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(value)}
	if err := send(config(), one); err != nil {
		return err
	}
	got, err := read(ctx, topic, 1)
	if err == nil && !bytes.Equal(got[0].Value, value) {
		return errors.New("differs")
	}
	return err
}

func idempotence(ctx context.Context) error {
	c := config()
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
	return round(ctx, c, 500)
}

// A member of a group: what it was given, and the records that came.
type member struct {
	group    sarama.ConsumerGroup
	messages chan *sarama.ConsumerMessage
	commit   bool
	lock     sync.Mutex
	claims   []int32
	stop     context.CancelFunc
	ended    chan struct{}
}

func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.claims = nil
	for _, partitions := range s.Claims() {
		m.claims = append(m.claims, partitions...)
	}
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for one := range c.Messages() {
		if m.commit {
			s.MarkMessage(one, "")
			s.Commit()
		}
		select {
		case m.messages <- one:
		case <-s.Context().Done():
		}
	}
	return nil
}

func (m *member) count() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return len(m.claims)
}

func join(group, topic string, commit bool) (*member, error) {
	g, err := sarama.NewConsumerGroup(seeds, group, config())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	messages, ended := make(chan *sarama.ConsumerMessage, 10), make(chan struct{})
	m := &member{group: g, messages: messages, commit: commit, stop: stop, ended: ended}
	go func() {
		defer close(m.ended)
		for ctx.Err() == nil {
			if g.Consume(ctx, []string{topic}, m) != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return m, nil
}

func (m *member) leave() {
	m.stop()
	<-m.ended
	m.group.Close()
}

func resume(ctx context.Context) error {
	topic, err := create(1)
	if err != nil {
		return err
	}
	group := check.Unique("g")
	for _, want := range []string{"a", "b"} {
		one := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(want)}
		if err := send(config(), one); err != nil {
			return err
		}
		m, err := join(group, topic, true)
		if err != nil {
			return err
		}
		select {
		case got := <-m.messages:
			m.leave()
			if string(got.Value) != want {
				return fmt.Errorf("%s instead of %s", got.Value, want)
			}
		case <-ctx.Done():
			return errors.New("no record")
		}
	}
	return nil
}

func rebalance(ctx context.Context) error {
	topic, err := create(4)
	if err != nil {
		return err
	}
	group := check.Unique("g")
	first, err := join(group, topic, false)
	if err != nil {
		return err
	}
	defer first.leave()
	if err := check.Until(ctx, "one has all", func() bool { return first.count() == 4 }); err != nil {
		return err
	}
	second, err := join(group, topic, false)
	if err != nil {
		return err
	}
	shared := func() bool { return first.count() == 2 && second.count() == 2 }
	err = check.Until(ctx, "each has two", shared)
	second.leave()
	if err != nil {
		return err
	}
	return check.Until(ctx, "one has all again", func() bool { return first.count() == 4 })
}

func describe(context.Context) error {
	topic, err := create(1)
	if err != nil {
		return err
	}
	return admin(func(a sarama.ClusterAdmin) error {
		resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic}
		settings, err := a.DescribeConfig(resource)
		if err != nil {
			return err
		}
		if len(settings) < 20 {
			return fmt.Errorf("only %d settings", len(settings))
		}
		if _, err := a.ListConsumerGroups(); err != nil {
			return err
		}
		if _, err := a.DescribeTopics([]string{topic}); err != nil {
			return err
		}
		if _, err := a.DescribeLogDirs([]int32{0}); err != nil {
			return err
		}
		return a.DeleteTopic(topic)
	})
}

func metadata(context.Context) error {
	return admin(func(a sarama.ClusterAdmin) error {
		brokers, _, err := a.DescribeCluster()
		if err == nil && len(brokers) == 0 {
			return errors.New("no brokers")
		}
		return err
	})
}

func main() {
	seeds = []string{os.Args[1]}
	check.Test("metadata", metadata)
	check.Test("create topic", func(context.Context) error { _, err := create(3); return err })
	codec("none", sarama.CompressionNone)
	codec("gzip", sarama.CompressionGZIP)
	codec("snappy", sarama.CompressionSnappy)
	codec("lz4", sarama.CompressionLZ4)
	codec("zstd", sarama.CompressionZSTD)
	check.Test("keys headers nulls timestamps", fields)
	check.Test("900 KB record", large)
	check.Test("idempotence", idempotence)
	check.Test("commit and resume", resume)
	check.Test("group with a rebalance", rebalance)
	check.Test("describe", describe)
	check.Exit()
}
