// kafka-go against a broker: kafkago BOOTSTRAP. Prints "name ok" or "name FAIL reason" lines.
// It has no idempotent producer.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"compat/check"

	"github.com/segmentio/kafka-go"
)

var (
	seed   string
	client *kafka.Client
)

func create(ctx context.Context, partitions int) (string, error) {
	topic := check.Unique("kafkago")
	wanted := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}
	answer, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{wanted}})
	if err != nil {
		return "", err
	}
	return topic, answer.Errors[topic]
}

func send(ctx context.Context, topic string, c kafka.Compression, all ...kafka.Message) error {
	w := &kafka.Writer{Addr: kafka.TCP(seed), Topic: topic, Compression: c,
		RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond}
	defer w.Close()
	return w.WriteMessages(ctx, all...)
}

func reader(topic, group string) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{Brokers: []string{seed}, Topic: topic, GroupID: group,
		MaxWait: 100 * time.Millisecond, StartOffset: kafka.FirstOffset, MaxBytes: 10e6,
		HeartbeatInterval: 300 * time.Millisecond, SessionTimeout: 6 * time.Second})
}

func read(ctx context.Context, topic string, count int) ([]kafka.Message, error) {
	r := reader(topic, "")
	defer r.Close()
	var got []kafka.Message
	for len(got) < count {
		one, err := r.ReadMessage(ctx)
		if err != nil {
			return got, err
		}
		got = append(got, one)
	}
	return got, nil
}

func codec(name string, codec kafka.Compression) {
	check.Test("codec "+name, func(ctx context.Context) error {
		topic, err := create(ctx, 1)
		if err != nil {
			return err
		}
		var all []kafka.Message
		for n := range 200 {
			all = append(all, kafka.Message{Value: bytes.Repeat([]byte("x"), n)})
		}
		if err := send(ctx, topic, codec, all...); err != nil {
			return err
		}
		got, err := read(ctx, topic, 200)
		for n, one := range got {
			if !bytes.Equal(one.Value, all[n].Value) {
				return fmt.Errorf("record %d differs", n)
			}
		}
		return err
	})
}

func fields(ctx context.Context) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	// Retention takes what is older than a week.
	at := time.UnixMilli(time.Now().UnixMilli()).Add(-time.Hour)
	headers := []kafka.Header{{Key: "h", Value: []byte("v")}}
	full := kafka.Message{Key: []byte("k"), Headers: headers, Time: at}
	bare := kafka.Message{Value: []byte("v"), Time: at}
	if err := send(ctx, topic, 0, full, bare); err != nil {
		return err
	}
	got, err := read(ctx, topic, 2)
	if err != nil {
		return err
	}
	one, two := got[0], got[1]
	if string(one.Key) != "k" || len(one.Value) != 0 || !one.Time.Equal(at) ||
		len(one.Headers) != 1 || string(one.Headers[0].Value) != "v" {
		return fmt.Errorf("came back as %+v", one)
	}
	if len(two.Key) != 0 || string(two.Value) != "v" || len(two.Headers) != 0 {
		return fmt.Errorf("came back as %+v", two)
	}
	return nil
}

func large(ctx context.Context) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	value := check.Random(900_000)
	if err := send(ctx, topic, 0, kafka.Message{Value: value}); err != nil {
		return err
	}
	got, err := read(ctx, topic, 1)
	if err == nil && !bytes.Equal(got[0].Value, value) {
		return errors.New("differs")
	}
	return err
}

func resume(ctx context.Context) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	group := check.Unique("g")
	for _, want := range []string{"a", "b"} {
		if err := send(ctx, topic, 0, kafka.Message{Value: []byte(want)}); err != nil {
			return err
		}
		r := reader(topic, group)
		one, err := r.FetchMessage(ctx)
		if err == nil {
			err = r.CommitMessages(ctx, one)
		}
		r.Close()
		if err != nil {
			return err
		}
		if string(one.Value) != want {
			return fmt.Errorf("%s instead of %s", one.Value, want)
		}
	}
	return nil
}

// Whether the group is stable with so many members.
func stable(ctx context.Context, group string, members int) func() bool {
	return func() bool {
		answer, err := client.DescribeGroups(ctx,
			&kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
		if err != nil || len(answer.Groups) != 1 {
			return false
		}
		one := answer.Groups[0]
		return one.GroupState == "Stable" && len(one.Members) == members
	}
}

func rebalance(ctx context.Context) error {
	topic, err := create(ctx, 4)
	if err != nil {
		return err
	}
	group := check.Unique("g")
	first := reader(topic, group)
	defer first.Close()
	if err := check.Until(ctx, "one member", stable(ctx, group, 1)); err != nil {
		return err
	}
	second := reader(topic, group)
	err = check.Until(ctx, "two members", stable(ctx, group, 2))
	second.Close()
	if err != nil {
		return err
	}
	return check.Until(ctx, "one member again", stable(ctx, group, 1))
}

func describe(ctx context.Context) error {
	topic, err := create(ctx, 1)
	if err != nil {
		return err
	}
	resource := kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic,
		ResourceName: topic}
	answer, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{resource}})
	if err != nil {
		return err
	}
	if n := len(answer.Resources[0].ConfigEntries); n < 20 {
		return fmt.Errorf("only %d settings", n)
	}
	if _, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{}); err != nil {
		return err
	}
	_, err = client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	return err
}

func metadata(ctx context.Context) error {
	answer, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err == nil && len(answer.Brokers) == 0 {
		return errors.New("no brokers")
	}
	return err
}

func main() {
	seed = os.Args[1]
	client = &kafka.Client{Addr: kafka.TCP(seed)}
	check.Test("metadata", metadata)
	check.Test("create topic", func(ctx context.Context) error {
		_, err := create(ctx, 3)
		return err
	})
	codec("none", 0)
	codec("gzip", kafka.Gzip)
	codec("snappy", kafka.Snappy)
	codec("lz4", kafka.Lz4)
	codec("zstd", kafka.Zstd)
	check.Test("keys headers nulls timestamps", fields)
	check.Test("900 KB record", large)
	check.Test("commit and resume", resume)
	check.Test("group with a rebalance", rebalance)
	check.Test("describe", describe)
	check.Exit()
}
