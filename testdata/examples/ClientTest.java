// Tests of a client of petstore, without a library. Run "go build" in ../.. once,
// and then "java ClientTest.java" here (Java 17 or newer). With JUnit, each call
// of test in main becomes a method with @Test. The call of start becomes a method
// with @BeforeAll, and the reset one with @BeforeEach.
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

class ClientTest {
    /**
     * The client under test: put yours in its place. It sends a request up to four
     * times. It gives up when an answer takes longer than its timeout, in seconds.
     */
    record Client(String base, int timeout) {
        static final HttpClient http = HttpClient.newHttpClient();

        void createPet(String pet) throws Exception {
            retry("POST", URI.create(base + "/pets"), pet);
        }

        /** Returns the ids. */
        List<String> listPets() throws Exception {
            var ids = new ArrayList<String>();
            var uri = URI.create(base + "/pets?limit=2");
            while (uri != null) {
                var page = retry("GET", uri, "");
                ids.addAll(find("\"id\":(\\d+)", page.body()));
                var links = find("<(.*)>; rel=\"next\"", page.headers().firstValue("Link").orElse(""));
                uri = links.isEmpty() ? null : uri.resolve(links.get(0));
            }
            return ids;
        }

        HttpResponse<String> retry(String method, URI uri, String body) throws Exception {
            for (int tries = 1; ; tries++) {
                try {
                    return send(method, uri, body);
                } catch (IOException | ExecutionException e) {
                    if (tries == 4) throw e;
                }
            }
        }

        HttpResponse<String> send(String method, URI uri, String body) throws Exception {
            var request = HttpRequest.newBuilder(uri)
                .header("Authorization", "Bearer test")
                .header("Content-Type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
            // The timeout of an HttpRequest would cover only the headers.
            var answer = http.sendAsync(request, HttpResponse.BodyHandlers.ofString());
            try {
                var response = answer.get(timeout, TimeUnit.SECONDS);
                if (response.statusCode() >= 400) {
                    throw new IOException(response.statusCode() + " " + response.body());
                }
                return response;
            } finally {
                answer.cancel(true); // closes the connection if the answer has not come
            }
        }
    }

    static final String REX = "{\"name\":\"Rex\",\"categoryId\":7}";

    static String base; // the base URL of the API, such as http://127.0.0.1:54321/v1
    static Process petstore; // keeps its standard input open
    static boolean failed;

    /**
     * Starts petstore. It stops when its standard input is closed, which happens when
     * this process ends, also if it is killed.
     */
    static void start() throws IOException {
        if (!new File("../../petstore").exists()) throw new IOException("build petstore first, with \"go build\"");
        var builder = new ProcessBuilder("../../petstore", "-addr", "127.0.0.1:0", "-stdin", "-log=false");
        builder.environment().put("PETSTORE_API_KEY", "test");
        builder.redirectError(ProcessBuilder.Redirect.INHERIT); // petstore reports why it cannot start
        petstore = builder.start();
        base = petstore.inputReader().readLine();
        if (base == null) throw new IOException("petstore did not start; standard error says why");
    }

    public static void main(String[] args) throws Exception {
        start();
        var client = new Client(base, 20);

        test("a pet is added once", () -> {
            client.createPet(REX);
            check("201", 1);
            var journal = admin("GET", "/__admin/requests", "");
            equal(find("\"method\":\"(.*?)\"", journal), List.of("POST"));
            equal(find("\"url\":\"(.*?)\"", journal), List.of("/v1/pets"));
            // The body is a JSON string in the journal, so its quotes are escaped.
            equal(find("\"body\":\"(.*?)\",\"status\"", journal), List.of(REX.replace("\"", "\\\"")));
        });

        // The first request gets an error, the second a reset connection, and the third
        // no answer, although its pet is added. So there are two pets in the end.
        test("createPet is retried", () -> {
            admin("PUT", "/__admin/fault?code=503,rst,lost&retry-after=0&operation=createPet", "");
            client.createPet(REX);
            check("503 0 0 201", 2);
        });

        test("the third page fails once", () -> {
            admin("POST", "/__admin/reset", "[" + (REX + ",").repeat(6) + REX + "]");
            admin("PUT", "/__admin/fault?code=500&skip=2&times=1&operation=listPets", "");
            equal(String.join(" ", client.listPets()), "1 2 3 4 5 6 7");
            check("200 200 500 200 200", 7);
        });

        // The answer comes in pieces, one a second, until the test ends the fault. Then
        // the rest comes at once.
        test("a slow answer is read to its end", () -> {
            admin("POST", "/__admin/reset", "[" + REX + "]");
            admin("PUT", "/__admin/fault?code=drip&operation=listPets", "");
            var listed = CompletableFuture.supplyAsync(() -> {
                try {
                    return client.listPets();
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            });
            admin("GET", "/__admin/requests?total=1", ""); // returns when the first piece is about to be sent
            equal(listed.isDone(), false);
            admin("DELETE", "/__admin/fault", "");
            equal(listed.get(), List.of("1"));
            check("200", 1);
        });

        test("the client gives up before the operation", () -> giveUp("delay=30", "0", 0));

        // A client whose timeout covers only the headers waits for 30 seconds here.
        test("the client gives up on half an answer", () -> giveUp("code=stall", "201", 1));

        System.exit(failed ? 1 : 0);
    }

    static void giveUp(String fault, String statuses, int pets) throws Exception {
        admin("PUT", "/__admin/fault?operation=createPet&" + fault, "");
        try {
            new Client(base, 2).createPet(REX);
            throw new AssertionError("the client did not give up");
        } catch (TimeoutException expected) {
            // petstore may record a request a moment after its client has left.
            admin("GET", "/__admin/requests?total=1", "");
            check(statuses, pets);
        }
    }

    interface Test {
        void run() throws Exception;
    }

    static void test(String name, Test test) throws Exception {
        admin("POST", "/__admin/reset", "");
        try {
            test.run();
            System.out.println("ok - " + name);
        } catch (Exception | AssertionError e) {
            System.out.println("FAILED - " + name);
            e.printStackTrace();
            failed = true;
        }
    }

    /** Sends a request of the test itself, which is not recorded and to which no fault is applied. */
    static String admin(String method, String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(base).resolve(path))
            .header("Authorization", "Bearer test")
            .header("Petstore-Observer", "test")
            .method(method, HttpRequest.BodyPublishers.ofString(body))
            .build();
        var response = Client.http.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() >= 400) throw new IOException(method + " " + path + ": " + response.body());
        return response.body();
    }

    /**
     * Compares the statuses of the answers, and the number of pets. A request is
     * recorded before its answer is sent, so check need not wait.
     */
    static void check(String statuses, int pets) throws Exception {
        var journal = admin("GET", "/__admin/requests", "");
        equal(String.join(" ", find("\"status\":(\\d+)", journal)), statuses);
        equal(find("\"id\":(\\d+)", admin("GET", "/v1/pets", "")).size(), pets);
    }

    static void equal(Object got, Object want) {
        if (!got.equals(want)) throw new AssertionError("got " + got + ", want " + want);
    }

    /** Returns the first group of each match. */
    static List<String> find(String regex, String text) {
        return Pattern.compile(regex).matcher(text).results().map(match -> match.group(1)).toList();
    }
}
