import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Beats for one member until it is closed, and then says that it leaves. Ids must need no escape in JSON. */
public class Heartbeats implements AutoCloseable {
    private static final String TOPIC = "consumer-heartbeats";

    private final KafkaProducer<String, String> producer;
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    private final String group;
    private final String member;

    public Heartbeats(String bootstrap, String group, String member, Duration session) {
        this.group = group;
        this.member = member;
        producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap, "acks", "1", "linger.ms", 0),
            new StringSerializer(), new StringSerializer());
        String beat = String.format(
            "{\"group_id\":\"%s\",\"member_id\":\"%s\",\"session_timeout_ms\":%d,\"client_id\":\"java\"}",
            group, member, session.toMillis());
        timer.scheduleAtFixedRate(() -> send(beat), 0, session.toMillis() / 4, TimeUnit.MILLISECONDS);
    }

    private void send(String value) {
        producer.send(new ProducerRecord<>(TOPIC, group, value), (metadata, error) -> {
            if (error != null) {
                System.err.println("heartbeat lost: " + error.getMessage());
            }
        });
    }

    @Override
    public void close() {
        timer.shutdownNow();
        send(String.format("{\"type\":\"leave\",\"group_id\":\"%s\",\"member_id\":\"%s\"}", group, member));
        producer.close(Duration.ofSeconds(5));
    }

    public static void main(String[] args) throws InterruptedException {
        Heartbeats heartbeats = new Heartbeats(args[0], args[1], args[2], Duration.ofSeconds(10));
        Runtime.getRuntime().addShutdownHook(new Thread(heartbeats::close));
        Thread.currentThread().join();
    }
}
