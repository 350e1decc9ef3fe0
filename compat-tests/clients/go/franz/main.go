// franz-go against a broker: franz BOOTSTRAP. Prints "name ok" or "name FAIL reason" lines.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	seeds  string
	failed bool
)

func test(name string, body func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	if err := body(ctx); err != nil {
		failed = true
		fmt.Printf("%s FAIL %v\n", name, err)
		return
	}
	fmt.Printf("%s ok\n", name)
}

func unique(prefix string) string {
	raw := make([]byte, 5)
	rand.Read(raw)
	return fmt.Sprintf("%s-%x", prefix, raw)
}

func client(opts ...kgo.Opt) *kgo.Client {
	all := append([]kgo.Opt{kgo.SeedBrokers(seeds), kgo.FetchMaxWait(100 * time.Millisecond)}, opts...)
	cl, err := kgo.NewClient(all...)
	if err != nil {
		panic(err)
	}
	return cl
}

func create(ctx context.Context, partitions int32) (string, error) {
	cl := client()
	defer cl.Close()
	topic := unique("franz")
	_, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, topic)
	return topic, err
}

func send(ctx context.Context, records []*kgo.Record, opts ...kgo.Opt) error {
	cl := client(append(opts, kgo.MaxBufferedRecords(10000))...)
	defer cl.Close()
	return cl.ProduceSync(ctx, records...).FirstErr()
}

func read(ctx context.Context, count int, opts ...kgo.Opt) ([]*kgo.Record, error) {
	cl := client(append(opts, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	defer cl.Close()
	var got []*kgo.Record
	for len(got) < count {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return got, err
		}
		got = append(got, fetches.Records()...)
	}
	return got, nil
}

func codec(name string, compression kgo.CompressionCodec) {
	test("codec "+name, func(ctx context.Context) error {
		topic, err := create(ctx, 1)
		if err != nil {
			return err
		}
		var records []*kgo.Record
		for n := 0; n < 200; n++ {
			value := []byte(fmt.Sprintf("%d-%s", n, bytes.Repeat([]byte("x"), n)))
			records = append(records, &kgo.Record{Topic: topic, Value: value})
		}
		if err := send(ctx, records, kgo.ProducerBatchCompression(compression)); err != nil {
			return err
		}
		got, err := read(ctx, 200, kgo.ConsumeTopics(topic))
		for n := range got {
			if !bytes.Equal(got[n].Value, records[n].Value) {
				return fmt.Errorf("record %d differs", n)
			}
		}
		return err
	})
}

func plain() {
	test("metadata", func(ctx context.Context) error {
		cl := client()
		defer cl.Close()
		meta, err := kadm.NewClient(cl).Metadata(ctx)
		if err == nil && (len(meta.Brokers) == 0 || meta.Cluster == "") {
			return errors.New("no brokers")
		}
		return err
	})
	test("create topic", func(ctx context.Context) error {
		_, err := create(ctx, 3)
		return err
	})
	codec("none", kgo.NoCompression())
	codec("gzip", kgo.GzipCompression())
	codec("snappy", kgo.SnappyCompression())
	codec("lz4", kgo.Lz4Compression())
	codec("zstd", kgo.ZstdCompression())
	test("keys headers nulls timestamps", func(ctx context.Context) error {
		topic, err := create(ctx, 1)
		if err != nil {
			return err
		}
		// Retention takes what is older than a week.
		at := time.UnixMilli(time.Now().UnixMilli()).Add(-time.Hour)
		headers := []kgo.RecordHeader{{Key: "h", Value: []byte("v")}, {Key: "n", Value: nil}}
		record := &kgo.Record{Topic: topic, Key: []byte("k"), Headers: headers, Timestamp: at}
		if err := send(ctx, []*kgo.Record{record}); err != nil {
			return err
		}
		got, err := read(ctx, 1, kgo.ConsumeTopics(topic))
		if err != nil {
			return err
		}
		one := got[0]
		if string(one.Key) != "k" || one.Value != nil || !one.Timestamp.Equal(at) ||
			len(one.Headers) != 2 || string(one.Headers[0].Value) != "v" || one.Headers[1].Value != nil {
			return fmt.Errorf("came back as %+v", one)
		}
		return nil
	})
	test("900 KB record", func(ctx context.Context) error {
		topic, err := create(ctx, 1)
		if err != nil {
			return err
		}
		value := make([]byte, 900000)
		rand.Read(value)
		if err := send(ctx, []*kgo.Record{{Topic: topic, Value: value}}); err != nil {
			return err
		}
		got, err := read(ctx, 1, kgo.ConsumeTopics(topic))
		if err == nil && !bytes.Equal(got[0].Value, value) {
			return errors.New("differs")
		}
		return err
	})
	test("idempotence", func(ctx context.Context) error {
		topic, err := create(ctx, 1)
		if err != nil {
			return err
		}
		record := func() []*kgo.Record { return []*kgo.Record{{Topic: topic, Value: []byte("x")}} }
		if err := send(ctx, record(), kgo.DisableIdempotentWrite()); err != nil {
			return err
		}
		return send(ctx, record())
	})
}

func groups() {
	test("commit and resume", func(ctx context.Context) error {
		topic, err := create(ctx, 1)
		if err != nil {
			return err
		}
		group := unique("g")
		for _, want := range []string{"a", "b"} {
			if err := send(ctx, []*kgo.Record{{Topic: topic, Value: []byte(want)}}); err != nil {
				return err
			}
			cl := client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			records := cl.PollFetches(ctx).Records()
			err := cl.CommitRecords(ctx, records...)
			cl.Close()
			if err != nil {
				return err
			}
			if len(records) != 1 || string(records[0].Value) != want {
				return fmt.Errorf("%d records instead of %s", len(records), want)
			}
		}
		return nil
	})
	test("group with a rebalance", func(ctx context.Context) error {
		topic, err := create(ctx, 4)
		if err != nil {
			return err
		}
		group := unique("g")
		cl := client()
		defer cl.Close()
		admin := kadm.NewClient(cl)
		until := func(members int) error {
			for ctx.Err() == nil {
				described, err := admin.DescribeGroups(ctx, group)
				if one, ok := described[group]; err == nil && ok && one.State == "Stable" &&
					len(one.Members) == members && len(one.AssignedPartitions()[topic]) == 4 {
					return nil
				}
				time.Sleep(100 * time.Millisecond)
			}
			return fmt.Errorf("never stable with %d members", members)
		}
		join := func() *kgo.Client {
			one := client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
				kgo.HeartbeatInterval(300*time.Millisecond))
			go func() {
				for !one.PollFetches(ctx).IsClientClosed() && ctx.Err() == nil {
				}
			}()
			return one
		}
		first := join()
		defer first.Close()
		if err := until(1); err != nil {
			return err
		}
		second := join()
		if err := until(2); err != nil {
			second.Close()
			return err
		}
		second.Close()
		return until(1)
	})
	test("describe", func(ctx context.Context) error {
		topic, err := create(ctx, 1)
		if err != nil {
			return err
		}
		cl := client()
		defer cl.Close()
		admin := kadm.NewClient(cl)
		configs, err := admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return err
		}
		if len(configs[0].Configs) < 20 {
			return fmt.Errorf("only %d settings", len(configs[0].Configs))
		}
		if _, err := admin.ListGroups(ctx); err != nil {
			return err
		}
		if _, err := admin.DescribeAllLogDirs(ctx, nil); err != nil {
			return err
		}
		if _, err := admin.ListEndOffsets(ctx, topic); err != nil {
			return err
		}
		_, err = admin.DeleteTopics(ctx, topic)
		return err
	})
}

func main() {
	seeds = os.Args[1]
	plain()
	groups()
	if failed {
		os.Exit(1)
	}
}
